//! What a sweep takes. Whether it can be taken is decided under the job's lock, in
//! [`crate::protocol::forget`] (R9).

use crate::id::JobId;

/// Which ended jobs are kept. A job goes only when every limit that is set lets it go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Retention {
    /// The newest so many are kept.
    pub keep: Option<usize>,
    /// What ended no longer ago than this is kept, in ms.
    pub older_than_ms: Option<u64>,
}

/// An ended job, as retention sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The job.
    pub id: JobId,
    /// When it ended, in ms since the epoch.
    pub ended_at_ms: u64,
}

impl Retention {
    /// The jobs to take, oldest first. An end that lies in the future counts as just now.
    pub fn takes(&self, mut ended: Vec<Ended>, now_ms: u64) -> Vec<JobId> {
        ended.sort_by(|a, b| (a.ended_at_ms, &a.id).cmp(&(b.ended_at_ms, &b.id)));
        let spare = ended.len().saturating_sub(self.keep.unwrap_or(0));
        ended
            .into_iter()
            .take(spare)
            .filter(|job| {
                self.older_than_ms
                    .is_none_or(|limit| now_ms.saturating_sub(job.ended_at_ms) > limit)
            })
            .map(|job| job.id)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ends: &[u64]) -> Vec<Ended> {
        ends.iter()
            .map(|&ended_at_ms| Ended {
                id: JobId::new(ended_at_ms, "x", 1),
                ended_at_ms,
            })
            .collect()
    }

    fn taken(retention: Retention, ends: &[u64]) -> Vec<String> {
        retention
            .takes(ended(ends), 100)
            .into_iter()
            .map(String::from)
            .collect()
    }

    #[test]
    fn without_limits_everything_goes() {
        assert_eq!(taken(Retention::default(), &[9, 3]), ["3-x", "9-x"]);
    }

    #[test]
    fn the_newest_stay_and_the_young_stay() {
        let keep = Retention {
            keep: Some(2),
            older_than_ms: None,
        };
        assert_eq!(taken(keep, &[5, 90, 7]), ["5-x"]);
        let both = Retention {
            keep: Some(1),
            older_than_ms: Some(20),
        };
        assert_eq!(taken(both, &[79, 80, 95, 200]), ["79-x"]);
    }
}
