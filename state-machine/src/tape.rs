//! Tapes: what protocols did on a real disk, one JSON object a line, so that every run can be replayed. A replay that
//! asks for something else than its tape has shows that a protocol has an input besides its arguments and the disk's
//! replies; then the model, which replays too, would not be checking what ships.
//!
//! Here is only what a line says. Who writes one and who replays one is elsewhere: nothing in this room opens a file.

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::control::Control;
use crate::disk::{Change, Content, Create, Dir, Fill, Mode, Name, Open, Place, Pointer, Read};
use crate::id::{Key, PoolName, Token};
use crate::pull::part::Part;
use crate::record::{self, Damaged, Descriptor, History, Pool, Session, Slot, Status};

/// One line.
///
/// A protocol that another one calls begins too. No line says that one has ended: whoever replays it sees that. An
/// effect outside of any protocol, which its caller asked for directly, has a line like any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A protocol begins.
    Call(Call),
    /// This was asked for, and this was the answer.
    Effect(Effect, Reply),
}

/// What was asked of the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "each is the method of `Disk` of the same name, and its arguments"
)]
pub enum Effect {
    Open(Place, Mode),
    Create(Place),
    Lock(u32, Mode),
    Stands(u32, Place),
    Close(u32),
    Release(u32),
    Exists(Place),
    ReadDescriptor(Dir),
    ReadStatus(Dir),
    ReadHistory(Dir),
    ReadControl(Place),
    ReadPointer(Key),
    ReadPool(PoolName),
    ReadSlot(PoolName, u32),
    ReadSession(Token),
    ReadPart(Place),
    Write(Place, Content),
    Fill(Place, Content),
    Append(Dir, Vec<record::Line>, bool),
    Sync(Place),
    SyncAll,
    Rename(Place, Place),
    RenameNew(Place, Place),
    Link(Place, Place),
    Unlink(Place),
    Mkdir(Dir),
    Rmdir(Dir),
    List(Dir),
    GiveWay(u32),
}

/// What the disk answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To an open.
    Opened(Open<u32>),
    /// To a create.
    Created(Create<u32>),
    /// To a lock, a stands or an exists.
    Is(bool),
    /// To a read of a descriptor.
    Descriptor(Read<Descriptor>),
    /// To a read of a status.
    Status(Read<Status>),
    /// To a read of a history.
    History(History),
    /// To a read of a control file.
    Control(Option<Control>),
    /// To a read of a pointer.
    Pointer(Read<Pointer>),
    /// To a read of a pool.
    Pool(Read<Pool>),
    /// To a read of a slot.
    Slot(Read<Slot>),
    /// To a read of a session.
    Session(Read<Session>),
    /// To a read of the record of an unfinished file.
    Part(Read<Part>),
    /// To every change of names or contents.
    Changed(Change),
    /// To a fill.
    Filled(Fill),
    /// To a list.
    Listed(Option<Vec<Name>>),
    /// To what has only one outcome.
    Done,
    /// To anything: it failed, with this number of an error; 0 where it has none.
    Fault(i32),
}

impl Line {
    /// The bytes of the line, with its newline.
    pub fn encode(&self) -> Vec<u8> {
        record::encode(self)
    }

    /// Read one line.
    ///
    /// # Errors
    ///
    /// In what way it is no line of a tape.
    pub fn decode(bytes: &[u8]) -> Result<Line, Damaged> {
        record::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;

    #[test]
    fn a_line_can_be_read_by_people_and_loses_nothing() {
        let id = JobId::parse("7-a").expect("it is an id");
        let lock = Place::of_job(&id, Name::Lock);
        let open = Line::Effect(
            Effect::Open(lock, Mode::Exclusive),
            Reply::Opened(Open::Opened(5)),
        );
        assert_eq!(
            String::from_utf8(open.encode()).expect("JSON is text"),
            "{\"effect\":[{\"open\":[{\"file\":[{\"job\":\"7-a\"},\"lock\"]},\"exclusive\"]},\
             {\"opened\":{\"opened\":5}}]}\n"
        );
        let odd = Name::Other(vec![b'a', 0xff]);
        let listed = Line::Effect(
            Effect::List(Dir::Trash),
            Reply::Listed(Some(vec![odd, Name::Other(b"b".to_vec())])),
        );
        let begun = Line::Call(Call::Claim { id });
        for line in [open, listed, begun, Line::Call(Call::MakeFinal)] {
            assert_eq!(Line::decode(&line.encode()), Ok(line));
        }
    }
}
