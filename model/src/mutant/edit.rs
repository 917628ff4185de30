//! A shipped protocol with one effect wrong: it stands between the protocol and whoever answers it. The protocol itself
//! is the one that ships.

use std::fmt;

use state_machine::disk::{Change, Create, Fill, Mode, Open};

use super::site::Site;
use crate::effect::{Effect, Handle, Reply, Wake};
use crate::errand::Memory;
use crate::replay::{At, Host, Wanted};
use crate::stage::News;

/// How often an effect is made up in one run before that counts as going round for ever.
const MADE_UP: u32 = 1_000;

/// What is wrong about an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// It is left out, and taken for done.
    Skipped,
    /// It changes places with the effect after it.
    Late,
    /// It is left out, and answered with yes: a check that is missing, or a lock that is believed to be held.
    Yes,
    /// It is left out, and answered with no.
    No,
    /// It is left out, and nothing is found.
    Absent,
    /// It is left out, and something is believed to stand there.
    Exists,
    /// It is left out, and the file is believed to be out of reach.
    Denied,
    /// It takes a lock of the other mode.
    OtherMode,
    /// It replaces what it must not replace.
    Replacing,
    /// It is left out, and what is waited for is believed to have come.
    Come,
}

/// One effect of one protocol, and what is wrong about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Where.
    pub site: &'static Site,
    /// What.
    pub how: How,
}

impl How {
    /// What can be wrong about an effect, by its method.
    pub fn of(method: &str) -> &'static [How] {
        match method {
            "open" => &[How::Absent, How::Denied, How::OtherMode],
            "create" => &[How::Exists],
            "lock" => &[How::Yes, How::No, How::OtherMode],
            "stands" | "exists" => &[How::Yes, How::No],
            "close" | "release" | "give_way" | "mkdir" => &[How::Skipped],
            "read_descriptor" | "read_status" | "read_history" | "read_control"
            | "read_pointer" | "read_pool" | "read_slot" | "read_session" | "read_part"
            | "list" => &[How::Absent],
            "write" | "fill" | "append" | "sync" | "sync_all" | "rename" | "unlink" | "rmdir" => {
                &[How::Skipped, How::Late]
            }
            "end_leftovers" | "dismiss" => &[How::Skipped],
            "empty" => &[How::Skipped, How::Late],
            "verify" => &[How::Yes, How::No],
            "stop" | "left" | "is_empty" | "is_wanted" => &[How::Yes, How::No],
            "watch" | "await_alarm" => &[How::Come],
            "rename_new" | "link" => &[How::Skipped, How::Late, How::Replacing],
            _ => &[],
        }
    }

    fn word(self) -> &'static str {
        match self {
            How::Skipped => "skipped",
            How::Late => "late",
            How::Yes => "always yes",
            How::No => "always no",
            How::Absent => "never there",
            How::Exists => "always there",
            How::Denied => "always denied",
            How::OtherMode => "other mode",
            How::Replacing => "replacing",
            How::Come => "always over",
        }
    }

    /// The answer that is made up, for what is left out.
    fn made_up(self, effect: &Effect) -> Reply {
        match (self, effect) {
            (How::Yes, _) => Reply::Is(true),
            (How::No, _) => Reply::Is(false),
            (How::Absent, Effect::Open(..)) => Reply::Opened(Open::Absent),
            (How::Absent, Effect::List(_)) => Reply::Listed(None),
            (How::Absent, _) => Reply::Holds(None),
            (How::Come, _) => Reply::Woke(Wake::Ended),
            (How::Exists, _) => Reply::Created(Create::Exists),
            (How::Denied, _) => Reply::Opened(Open::Denied),
            (_, Effect::Close(_) | Effect::Release(_) | Effect::GiveWay(_) | Effect::SyncAll) => {
                Reply::Done
            }
            (_, Effect::Spawn(..) | Effect::EndTrees(..)) => Reply::Done,
            (_, Effect::Fill(..)) => Reply::Filled(Fill::Done),
            _ => Reply::Changed(Change::Done),
        }
    }

    /// The effect that is made in place of `effect`, if one is.
    fn instead_of(self, effect: &Effect) -> Option<Effect> {
        match (self, effect) {
            (How::OtherMode, Effect::Lock(handle, mode)) => {
                Some(Effect::Lock(*handle, other_than(*mode)))
            }
            (How::OtherMode, Effect::Open(place, mode)) => {
                Some(Effect::Open(place.clone(), other_than(*mode)))
            }
            (How::Replacing, Effect::RenameNew(from, to) | Effect::Link(from, to)) => {
                Some(Effect::Rename(from.clone(), to.clone()))
            }
            _ => None,
        }
    }
}

fn other_than(mode: Mode) -> Mode {
    match mode {
        Mode::Shared => Mode::Exclusive,
        Mode::Exclusive => Mode::Shared,
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.site, self.how.word())
    }
}

/// A host that gets one effect wrong.
#[derive(Debug)]
pub struct Editing<H> {
    /// Who answers.
    pub host: H,
    edit: Option<Edit>,
    late: Option<Wanted>,
    made_up: u32,
}

impl<H: Host> Editing<H> {
    /// Stand before `host` with this edit, or with none.
    pub fn new(host: H, edit: Option<Edit>) -> Editing<H> {
        Editing {
            host,
            edit,
            late: None,
            made_up: 0,
        }
    }

    /// Let what is still late happen.
    pub fn finish(&mut self) -> Result<(), H::Fault> {
        if let Some(late) = self.late.take() {
            self.host.answer(late.at, || late.effect.clone())?;
        }
        Ok(())
    }

    /// Answer the effect that is wrong.
    fn answer_wrongly(&mut self, how: How, at: At, effect: Effect) -> Result<Reply, H::Fault> {
        if let Some(instead) = how.instead_of(&effect) {
            return self.host.answer(at, || instead);
        }
        if how == How::Late && self.late.is_some() {
            return self.host.answer(at, || effect);
        }
        self.made_up += 1;
        assert!(self.made_up < MADE_UP, "it goes round for ever");
        let reply = how.made_up(&effect);
        if how == How::Late {
            self.late = Some(Wanted { effect, at });
        }
        Ok(reply)
    }
}

impl<H: Host> Host for Editing<H> {
    type Fault = H::Fault;

    fn answer(&mut self, at: At, effect: impl FnOnce() -> Effect) -> Result<Reply, H::Fault> {
        let Some(edit) = self.edit else {
            return self.host.answer(at, effect);
        };
        let was_late = self.late.is_some();
        let reply = if edit.site.is(at) {
            self.answer_wrongly(edit.how, at, effect())?
        } else {
            self.host.answer(at, effect)?
        };
        if was_late {
            self.finish()?;
        }
        Ok(reply)
    }

    fn failure(&self) -> H::Fault {
        self.host.failure()
    }

    fn can_go_on(&self, fault: &H::Fault) -> bool {
        self.host.can_go_on(fault)
    }

    fn hear(&mut self, news: News) {
        self.host.hear(news);
    }

    fn memory(&self) -> Option<Memory<Handle>> {
        self.host.memory()
    }
}
