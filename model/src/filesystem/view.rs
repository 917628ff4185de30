//! What the rules look at: the jobs that can be seen and what their files hold. Nothing here changes anything.

use std::sync::LazyLock;

use state_machine::control::Control;
use state_machine::disk::{Dir, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::liveness;
use state_machine::protocol::spare::SPARES;
use state_machine::record::{Descriptor, History, Status};

use super::{Data, Filesystem, Inode};
use crate::effect::path;
use crate::shared::Shared;

/// What is read from a status without content.
static LOST: LazyLock<Status> = LazyLock::new(Status::lost);

impl Filesystem {
    /// The jobs that can be seen.
    pub fn jobs(&self) -> Vec<JobId> {
        self.words(&Dir::Jobs)
            .filter_map(|word| JobId::parse(&word).ok())
            .collect()
    }

    /// What lies in `staging/` or `trash/`.
    pub fn tickets(&self, dir: &Dir) -> Vec<Ticket> {
        self.words(dir)
            .filter_map(|word| Ticket::parse(&word).ok())
            .collect()
    }

    /// Everything that stands: its path below the root, which inode it is, and what it holds where it is a file.
    pub fn walk(&self) -> Vec<(Vec<u8>, u8, Option<Shared<Data>>)> {
        let standing = [
            Dir::Root,
            Dir::Jobs,
            Dir::Staging,
            Dir::Trash,
            Dir::Keys,
            Dir::Spares,
            Dir::Pools,
            Dir::Sessions,
        ]
        .map(Place::Dir);
        let mut found: Vec<_> = standing
            .iter()
            .filter_map(|place| Some((path(place).into_bytes(), self.find(place)?, None)))
            .collect();
        let mut at = 0;
        while let Some((parent, ino, _)) = found.get(at).cloned() {
            if let Inode::Directory(entries) = &self.inodes[usize::from(ino)] {
                for (name, ino) in entries.iter() {
                    let data = match &self.inodes[usize::from(*ino)] {
                        Inode::File(data) => Some(data.clone()),
                        Inode::Directory(_) => None,
                    };
                    let path = [&parent[..], b"/", &name.to_bytes()[..]].concat();
                    found.push((path, *ino, data));
                }
            }
            at += 1;
        }
        found
    }

    fn words(&self, dir: &Dir) -> impl Iterator<Item = String> {
        self.list(dir)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|name| name.to_text())
    }

    /// Whether the directory at `place` is that of a job, under another name of it.
    pub fn is_job(&self, place: &Place) -> bool {
        let jobs = self.jobs();
        let mut dirs = jobs
            .iter()
            .map(|id| self.find(&Place::Dir(Dir::Job(id.clone()))));
        let dir = self.find(place);
        dir.is_some() && dirs.any(|job| job == dir)
    }

    /// Whether the job can be seen.
    pub fn has_job(&self, id: &JobId) -> bool {
        self.has(&Place::Dir(Dir::Job(id.clone())))
    }

    /// Whether anything stands at `place`.
    pub fn has(&self, place: &Place) -> bool {
        self.find(place).is_some()
    }

    /// The job's descriptor, where it can be read.
    pub fn descriptor_of(&self, id: &JobId) -> Option<&Descriptor> {
        match self.data(&Place::of_job(id, Name::Descriptor))?.record() {
            Data::Descriptor(descriptor) => Some(descriptor),
            _ => None,
        }
    }

    /// The numbers of the spares that are not as they are laid in: with a blank descriptor, and a lock that nobody has.
    pub fn touched_spares(&self) -> Vec<u8> {
        let touched = |number: &u8| {
            let spare = Dir::Spare(*number);
            let descriptor = self.data(&spare.at(Name::Descriptor)).map(|data| &**data);
            self.has(&Place::Dir(spare.clone()))
                && (descriptor != Some(&Data::Blank)
                    || self.lockers(&spare.at(Name::Lock)).next().is_some())
        };
        (0..SPARES).filter(touched).collect()
    }

    /// The numbers of the spares that lack their lock, or the room for a descriptor. What that room holds is no matter: a
    /// taker whose rename was lost with the power may have filled it.
    pub fn robbed_spares(&self) -> Vec<u8> {
        let robbed = |number: &u8| {
            let spare = Dir::Spare(*number);
            let descriptor = self.data(&spare.at(Name::Descriptor));
            let has_room = descriptor.is_some_and(|data| data.length() >= Data::Blank.length());
            let is_whole = has_room && self.has(&spare.at(Name::Lock));
            self.has(&Place::Dir(spare)) && !is_whole
        };
        (0..SPARES).filter(robbed).collect()
    }

    /// The job's status, where there is one that can be read.
    pub fn status_of(&self, id: &JobId) -> Option<&Status> {
        match self.data(&Place::of_job(id, Name::Status))?.record() {
            Data::Status(status) => Some(status),
            Data::Empty => Some(&LOST),
            _ => None,
        }
    }

    /// The job's history, where it has one.
    pub fn history_of(&self, id: &JobId) -> Option<&History> {
        match &**self.data(&Place::of_job(id, Name::Events))? {
            Data::History(history) => Some(history),
            _ => None,
        }
    }

    /// What the job's file `name` asks for.
    pub fn asked_of(&self, id: &JobId, name: Name) -> Option<Control> {
        Some(self.data(&Place::of_job(id, name))?.control())
    }

    /// The state that the job's record gives, queued where there is none.
    pub fn recorded(&self, id: &JobId) -> state_machine::job::State {
        self.status_of(id)
            .map_or(state_machine::job::State::Queued, |status| status.state)
    }

    /// The state that is true at this instant, `None` for a job that cannot be seen (R3, R4).
    pub fn truth(&self, id: &JobId) -> Option<state_machine::job::State> {
        let descriptor = self.descriptor_of(id)?;
        let held = self
            .lockers(&Place::of_job(id, Name::Lock))
            .next()
            .is_some();
        let status = match self.status_of(id) {
            Some(lost) if lost.lost && !held => {
                let history = self.history_of(id).cloned().unwrap_or_default();
                &liveness::find_again(lost.clone(), &history).ok()?
            }
            Some(status) => status,
            None => &Status::queued(descriptor.created_at_ms),
        };
        Some(liveness::conclude(descriptor, status, held))
    }
}
