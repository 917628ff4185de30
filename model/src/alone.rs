//! A role played to its end with nobody else there: how a scene is set before the checking begins, and how a
//! state is asked whether it heals alone (R22).

use crate::coverage::Coverage;
use crate::effect::{Effect, Handle, Reply, Wake};
use crate::errand::Memory;
use crate::machine::Machine;
use crate::mutant::Editing;
use crate::replay::{Asking, At, Host, Wanted};
use crate::role::{Outcome, Part};
use crate::stage::News;

/// The lane of a process that is alone. No world has as many lanes.
pub const LANE: u8 = u8::MAX;

/// The host that lets every effect happen at once.
#[derive(Debug)]
pub struct Alone<'a> {
    machine: &'a mut Machine,
    effects_left: u32,
    trees: Trees,
    coverage: Option<&'a Coverage>,
}

/// What becomes of the tree that a worker starts and then sleeps over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trees {
    /// It ends by itself.
    End,
    /// It lives on, and the worker is killed in its sleep.
    OutliveTheWorker,
}

/// Why a role did not reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It used up its effects.
    TooLong,
    /// It was killed in its sleep.
    Killed,
}

impl Host for Alone<'_> {
    type Fault = Stopped;

    fn answer(&mut self, at: At, effect: impl FnOnce() -> Effect) -> Result<Reply, Stopped> {
        self.effects_left = self.effects_left.checked_sub(1).ok_or(Stopped::TooLong)?;
        let effect = effect();
        if self.machine.is_asleep(LANE, &effect) {
            match self.trees {
                Trees::End => self.machine.end_tree(LANE),
                Trees::OutliveTheWorker => return Err(Stopped::Killed),
            }
            return Ok(Reply::Woke(Wake::Ended));
        }
        let reply = self.machine.apply(LANE, &effect);
        if let Some(coverage) = self.coverage {
            coverage.note(&Wanted { effect, at }, &reply);
        }
        Ok(reply)
    }

    fn failure(&self) -> Stopped {
        unreachable!("nothing fails where nobody lets it")
    }

    fn can_go_on(&self, _: &Stopped) -> bool {
        false
    }

    fn hear(&mut self, _: News) {}

    fn memory(&self) -> Option<Memory<Handle>> {
        None
    }
}

/// Play `part` to its end, in at most `effects` effects, and note what it reached.
pub fn play(
    machine: &mut Machine,
    part: &Part,
    effects: u32,
    trees: Trees,
    coverage: Option<&Coverage>,
) -> Result<Outcome, Stopped> {
    let alone = Alone {
        machine: &mut *machine,
        effects_left: effects,
        trees,
        coverage,
    };
    let mut disk = Asking {
        host: Editing::new(alone, part.edit),
        syncs: part.syncs,
    };
    let outcome = part
        .play(&mut disk)
        .and_then(|outcome| disk.host.finish().map(|()| outcome));
    machine.end_process(LANE);
    machine.files.renumber();
    outcome
}
