//! What a query names: an exact id, a name or a reference (ignoring case), or an unambiguous prefix of an id.

use thiserror::Error;

use crate::id::JobId;
use crate::nearest::nearest;

/// A job, as far as a query can name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: JobId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it fetches, if it is a pull.
    pub reference: Option<String>,
    /// The task that it runs, where that can be meant.
    pub task: Option<String>,
    /// Whether it has ended.
    pub ended: bool,
}

impl Candidate {
    fn is_named_by(&self, query: &str) -> bool {
        let same = |word: &Option<String>| {
            word.as_ref()
                .is_some_and(|word| word.to_lowercase() == query.to_lowercase())
        };
        self.name.as_deref() == Some(query) || same(&self.reference)
    }
}

/// Why a query names no job.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unresolved {
    /// Nothing matches.
    #[error("no job is called '{query}'{}", suggestion(meant.as_deref()))]
    Unknown {
        /// The query.
        query: String,
        /// The name of a job that was probably meant.
        meant: Option<String>,
    },
    /// Several match, and not exactly one of them is still going.
    #[error("'{query}' could be any of {}; name one by its id", list(matches))]
    Ambiguous {
        /// The query.
        query: String,
        /// What it could be, oldest first.
        matches: Vec<JobId>,
    },
}

/// How many matches a message lists.
const LISTED: usize = 8;

fn suggestion(meant: Option<&str>) -> String {
    meant.map_or(String::new(), |meant| format!("; '{meant}' was meant?"))
}

fn list(matches: &[JobId]) -> String {
    let shown: Vec<&str> = matches.iter().take(LISTED).map(JobId::as_str).collect();
    let more = matches.len().saturating_sub(LISTED);
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The one job that `query` names: an exact id before anything else; then a name or a reference, or else a task, and of several
/// jobs the one still going; of a task whose jobs have all ended the newest; then a prefix of exactly one id. A prefix is a guess at
/// an id and must hit one only: "the one still going" would let a slip of the finger stop whatever runs.
pub fn resolve(query: &str, candidates: &[Candidate]) -> Result<JobId, Unresolved> {
    if let Some(exact) = candidates.iter().find(|job| job.id.as_str() == query) {
        return Ok(exact.id.clone());
    }
    let named = candidates.iter().filter_map(|job| job.name.as_deref());
    let tasks = candidates.iter().filter_map(|job| job.task.as_deref());
    let names = named.chain(tasks);
    let unknown = || Unresolved::Unknown {
        query: query.to_owned(),
        meant: nearest(query, names).map(str::to_owned),
    };
    if query.is_empty() {
        return Err(unknown());
    }
    let named: Vec<&Candidate> = candidates
        .iter()
        .filter(|job| job.is_named_by(query))
        .collect();
    let is_of_task = |job: &&Candidate| job.task.as_deref() == Some(query);
    let matches = match still_going(&named).as_slice() {
        [only] => vec![*only],
        // What bears the name and is of no task of that name is meant as much as the task.
        _ if !named.iter().all(is_of_task) => named,
        _ => {
            let of_task: Vec<&Candidate> = candidates.iter().filter(is_of_task).collect();
            match of_task.iter().max_by_key(|job| &job.id) {
                Some(newest) => match still_going(&of_task) {
                    going if going.is_empty() => vec![*newest],
                    going => going,
                },
                None => {
                    let begins = |job: &&Candidate| job.id.as_str().starts_with(query);
                    candidates.iter().filter(begins).collect()
                }
            }
        }
    };
    match matches.as_slice() {
        [] => Err(unknown()),
        [only] => Ok(only.id.clone()),
        _ => {
            let mut matches: Vec<JobId> = matches.into_iter().map(|job| job.id.clone()).collect();
            matches.sort();
            Err(Unresolved::Ambiguous {
                query: query.to_owned(),
                matches,
            })
        }
    }
}

fn still_going<'a>(jobs: &[&'a Candidate]) -> Vec<&'a Candidate> {
    jobs.iter().copied().filter(|job| !job.ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, name: Option<&str>, ended: bool) -> Candidate {
        Candidate {
            id: JobId::parse(id).unwrap(),
            name: name.map(str::to_owned),
            reference: None,
            task: None,
            ended,
        }
    }

    #[test]
    fn a_task_is_its_job_under_way_or_else_its_newest() {
        let mut jobs = [
            job("10-one_2d_shot", Some("one_2d_shot"), true),
            job("12-one_2d_shot", Some("one_2d_shot"), false),
            job("13-one_2d_shot", Some("one_2d_shot"), true),
        ];
        for job in &mut jobs {
            job.task = Some("one-shot".into());
        }
        assert_eq!(
            resolve("one-shot", &jobs).unwrap().as_str(),
            "12-one_2d_shot"
        );
        jobs[1].ended = true;
        for query in ["one-shot", "13"] {
            assert_eq!(resolve(query, &jobs).unwrap().as_str(), "13-one_2d_shot");
        }
        // Of two under way neither is taken for the other.
        jobs[0].ended = false;
        jobs[1].ended = false;
        let both = resolve("one-shot", &jobs).unwrap_err();
        assert!(
            matches!(&both, Unresolved::Ambiguous { matches, .. } if matches.len() == 2),
            "{both}"
        );
        let said = resolve("one-shut", &jobs).unwrap_err().to_string();
        assert_eq!(said, "no job is called 'one-shut'; 'one-shot' was meant?");
    }

    #[test]
    fn an_exact_id_wins_over_being_a_prefix() {
        let jobs = [job("10-a", None, true), job("10-a-2", None, false)];
        assert_eq!(resolve("10-a", &jobs).unwrap().as_str(), "10-a");
    }

    #[test]
    fn of_what_is_not_there_the_nearest_name_is_said() {
        let jobs = [job("10-a", Some("web"), true), job("11-b", None, false)];
        let said = |query| resolve(query, &jobs).unwrap_err().to_string();
        assert_eq!(said("wbe"), "no job is called 'wbe'; 'web' was meant?");
        assert_eq!(said("database"), "no job is called 'database'");
    }

    #[test]
    fn of_several_of_a_name_the_one_still_going_is_meant_and_a_prefix_is_of_one_only() {
        let mut jobs = vec![
            job("10-a", Some("web"), true),
            job("11-b", Some("web"), false),
            job("12-c", None, true),
        ];
        assert_eq!(resolve("web", &jobs).unwrap().as_str(), "11-b");
        assert_eq!(resolve("12", &jobs).unwrap().as_str(), "12-c");
        assert!(resolve("1", &jobs).is_err());
        jobs[1].ended = true;
        let error = resolve("web", &jobs).unwrap_err();
        assert_eq!(
            error.to_string(),
            "'web' could be any of 10-a, 11-b; name one by its id"
        );
    }

    #[test]
    fn a_name_comes_before_the_beginning_of_an_id() {
        let jobs = [job("10-a", Some("1"), true), job("11-b", None, false)];
        assert_eq!(resolve("1", &jobs).unwrap().as_str(), "10-a");
    }

    #[test]
    fn nothing_is_named_by_nothing() {
        assert!(resolve("", &[job("10-a", None, true)]).is_err());
        assert!(resolve("no", &[job("10-a", None, true)]).is_err());
    }

    #[test]
    fn references_ignore_case() {
        let mut pull = job("10-a", None, true);
        pull.reference = Some("hf:Owner/Name".into());
        assert_eq!(resolve("HF:owner/name", &[pull]).unwrap().as_str(), "10-a");
    }
}
