//! Somebody who makes two jobs at once, of which the second comes after the first, and lets them go.

use state_machine::id::JobId;
use state_machine::protocol::batch::create_batch;
use state_machine::record::{After, AfterWhen};

use super::keeper::let_go;
use super::{CREATED_AT_MS, Outcome, Part, descriptor};
use crate::stage::{News, Stage};

/// Make the jobs.
pub(super) fn queue<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let first = descriptor();
    let mut second = descriptor();
    second.order = 1;
    second.id = JobId::new(CREATED_AT_MS, "j", 2);
    second.after = vec![After {
        job: first.id.clone(),
        when: AfterWhen::Success,
    }];
    let mut both = [first, second];
    let Some(holders) = create_batch(disk, &mut both, &part.ticket)? else {
        return Ok(Outcome::Busy);
    };
    for descriptor in &both {
        disk.tell(News::Acknowledged(descriptor.id.clone()));
    }
    for (descriptor, holder) in both.iter().zip(holders) {
        let_go(disk, descriptor, holder, part.now_ms)?;
    }
    Ok(Outcome::Made)
}
