//! What can be found in a store: one word for each, which scripts may rely on. What is said of one that was found is the
//! business of whoever found it.

use serde::{Serialize, Serializer};

use super::Severity::{self, Note, Problem};

/// A kind of finding, as the table below has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its word. It never changes.
    pub(crate) word: &'static str,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// What `--fix` does about it; nothing where only a person can.
    pub(crate) fix: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word)
    }
}

/// The table: a name in the code, the word, how bad it is, what it is, what `--fix` does.
macro_rules! kinds {
    ($($name:ident $word:literal $severity:ident $about:literal $fix:literal)*) => {
        $(
            #[doc = $about]
            pub(super) const $name: Kind = Kind {
                word: $word,
                severity: $severity,
                fix: $fix,
                about: $about,
            };
        )*

        /// Every kind, in the order of the documentation.
        pub(crate) const ALL: &[Kind] = &[$($name),*];
    };
}

kinds! {
    MISSING_DIRECTORY "missing-directory" Problem
        "a directory of the store is missing" "makes it"
    NOT_DIRECTORY "not-directory" Problem
        "something else stands where a directory of the store must be" "sets it aside and makes the directory"
    MODE "mode" Problem
        "others can read or write what is their owner's alone, or its owner cannot" "sets the mode"
    OWNER "owner" Problem
        "something belongs to another user" ""
    CONFIG "config" Problem
        "config.toml cannot be read" ""
    UNREADABLE "unreadable" Problem
        "a part of the store cannot be looked at" "sets modes and makes directories, and looks again"
    LOCK_MISSING "lock-missing" Problem
        "a lock is missing, so that nobody can hold what it is for" "makes it, where no process is at work there"
    LOCK_ODD "lock-odd" Problem
        "something that is no plain file stands in a lock's place, and counts as held" "puts an empty file in its place, and sets aside what stood there"
    DEAD_SOCKET "dead-socket" Note
        "the socket of a supervisor that is gone" "removes it"
    LEFT_BEHIND "left-behind" Note
        "a crash left something in staging/ or trash/" "collects it"
    SPARE "spare" Note
        "a loss of power has brought a directory back that was laid in" "collects it"
    STRAY "stray" Note
        "something that is nothing of ours, or of a newer version" ""
    SET_ASIDE "set-aside" Note
        "broken/ holds what was set aside" ""
    NOT_A_JOB "not-a-job" Problem
        "something in jobs/ that can be no job" "sets it aside"
    DESCRIPTOR "descriptor" Problem
        "a job.json is missing or cannot be read" "sets the job aside"
    STATUS "status" Problem
        "a status.json cannot be read" "sets the job aside"
    NEWER "newer" Problem
        "a record is whole and says something that this version does not know" ""
    WRONG_NAME "wrong-name" Problem
        "a job's directory is not called as the id inside says" "renames it, or sets it aside where there is a job of that id"
    ODD_FILE "odd-file" Problem
        "something that is no plain file stands in the place of a job's file" "sets it aside"
    HISTORY_ILLEGAL "history-illegal" Problem
        "a history tells of steps that no job can make, such as two ends" "sets it aside and begins it anew from the record; where the history tells of an end and the record of none, sets the job aside"
    HISTORY_CONTRADICTS "history-contradicts" Problem
        "a history and its record tell of different states, and no crash leaves them so" "as for history-illegal"
    HISTORY_TOO_LONG "history-too-long" Problem
        "a history is longer than 64 MiB, so that nobody reads it" "sets it aside and begins it anew from the record"
    HISTORY_BEHIND "history-behind" Note
        "a history and its record differ by what a crash leaves" "completes what is behind"
    RECORD_LOST "record-lost" Note
        "a loss of power has emptied a status.json" "records what the history still knows"
    HISTORY_GARBAGE "history-garbage" Note
        "lines of a history cannot be read, and are passed over" ""
    HISTORY_SHORT "history-short" Note
        "a history lacks states that its record counts" ""
    HISTORY_TORN "history-torn" Note
        "the last line of a history is torn, and is passed over" ""
    TIME_BACKWARDS "time-backwards" Note
        "times go backwards, as when a clock was set" ""
    EXIT_MISSING "exit-missing" Note
        "a job has ended, and nothing says how its command did" ""
    PROGRESS "progress" Note
        "more is done than there is in all" ""
    REQUEST_WAITS "request-waits" Note
        "something was asked of a job that nobody holds" "answers it"
    REQUEST_LEFT "request-left" Note
        "something was asked of a job that has ended" "answers it, which changes nothing about the job"
    WORKER_LOST "worker-lost" Note
        "a job says that it runs, and nobody holds it" "records that it was interrupted"
    REBOOTED "rebooted" Note
        "a job says that it runs, and the machine was started anew since" "records that it was interrupted"
    INTERRUPTED "interrupted" Note
        "a job was interrupted, and waits to be resumed or stopped" ""
    PROCESSES_LEFT "processes-left" Problem
        "processes of a job are left, and nobody is responsible for them" ""
    PROCESSES_OF_NOBODY "processes-of-nobody" Problem
        "a process is of a job that is not there any more" ""
    LOG_ORDER "log-order" Note
        "an older log file was written to after a newer one" ""
    LOG_TOO_LONG "log-too-long" Note
        "the log files of a job are longer than its limit allows" ""
    LOG_TOO_MANY "log-too-many" Note
        "a job has more old log files than it keeps" ""
    AFTER_UNKNOWN "after-unknown" Note
        "a job comes after one that is not there" ""
    AFTER_CYCLE "after-cycle" Problem
        "jobs wait for each other" ""
    KEY_GARBAGE "key-garbage" Problem
        "the pointer of a key cannot be read, so that nothing starts under it" "sets it aside, and writes what the jobs still tell"
    KEY_ASTRAY "key-astray" Problem
        "a job under way bears a key whose pointer does not name it, so that a second one could start" "has the pointer name it"
    KEY_SHARED "key-shared" Problem
        "two jobs under way bear one name or destination" ""
    KEY_STALE "key-stale" Note
        "names were last used by jobs that are cleaned" ""
    POOL_GARBAGE "pool-garbage" Problem
        "a pool.json cannot be read" "sets it aside and pauses the pool, so that nothing starts by what nobody wanted"
    SLOT_GARBAGE "slot-garbage" Problem
        "a slot.json cannot be read, or is of another slot" "sets it aside; a session that is open in the slot keeps it, and otherwise the slot is looked into before it is used"
    SLOT_BROKEN "slot-broken" Note
        "a slot is broken, and nobody gets it" ""
    SLOT_LEFT "slot-left" Note
        "whoever had a slot is gone and did not give it back" ""
    PLACE_MISSING "place-missing" Problem
        "the directory that one works in is missing from a slot" "calls the slot broken, so that nobody gets it; not where a session is open in it"
    PLACE_ASTRAY "place-astray" Problem
        "what stands in a slot is not registered as its own" "as for place-missing"
    SESSION_GARBAGE "session-garbage" Problem
        "the file of a session cannot be read" "sets it aside; where a slot is claimed by that session, writes what the claim says"
    SESSION_VOID "session-void" Note
        "the slot of a session is another's by now, or nobody's" "sets the session aside; it is over"
    SESSION_SLOT_GONE "session-slot-gone" Problem
        "the slot of a session is gone" "sets the session aside"
    SESSION_NAME "session-name" Problem
        "the file of a session is not called as the token inside says" "sets it aside"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_one_kind() {
        for (nth, kind) in ALL.iter().enumerate() {
            let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(kind.word.chars().all(is_word), "{}", kind.word);
            assert!(ALL[..nth].iter().all(|other| other.word != kind.word));
        }
    }
}
