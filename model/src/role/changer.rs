//! Somebody who changes what was made of a pool, or forgets it.

use state_machine::protocol::pool::{Changed, PoolForgotten, Wish, change_pool, forget_pool};

use super::{Change, Outcome, pool};
use crate::stage::Stage;

/// Change the pool.
pub(super) fn change<D: Stage>(disk: &mut D, wish: Change) -> Result<Outcome, D::Fault> {
    let wish = match wish {
        Change::TwoSlots => Wish {
            slots: Some(2),
            ..Wish::default()
        },
        Change::Pause => Wish {
            paused: Some(true),
            ..Wish::default()
        },
        Change::Forget => {
            return Ok(match forget_pool(disk, &pool())? {
                PoolForgotten::Yes | PoolForgotten::No => Outcome::Changed,
                PoolForgotten::Damaged(_) => Outcome::Damaged,
                PoolForgotten::Busy => Outcome::Busy,
            });
        }
    };
    Ok(match change_pool(disk, &pool(), wish)? {
        Changed::Is(_) => Outcome::Changed,
        Changed::Exists => Outcome::Busy,
        Changed::Damaged(_) => Outcome::Damaged,
        Changed::Busy => Outcome::Busy,
    })
}
