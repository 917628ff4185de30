//! When another attempt follows one that has ended, and how long to wait before it.

use serde::{Deserialize, Serialize};

/// How often a job is tried, and how the wait between two attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Retry {
    /// How many attempts there are; 1 means that a failure is final. 0 counts as 1.
    pub max_attempts: u32,
    /// Whether those are counted from the last healthy one, and not in all.
    #[serde(skip_serializing_if = "is_false")]
    pub in_a_row: bool,
    /// Whether an attempt that ended well is followed by another, like one that failed.
    #[serde(skip_serializing_if = "is_false")]
    pub always: bool,
    /// The longest wait before the second attempt, in ms; it doubles from there.
    pub backoff_ms: u64,
    /// No wait is longer than this, in ms.
    pub max_backoff_ms: u64,
    /// An attempt that ran at least this long was healthy, in ms: after it the waits start small again.
    pub healthy_after_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            max_attempts: 1,
            in_a_row: false,
            always: false,
            backoff_ms: 1_000,
            max_backoff_ms: 60_000,
            healthy_after_ms: 60_000,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Retry {
    /// Whether another attempt is due after the end of attempt number `attempt` (from 1), which was number `in_a_row` of those
    /// that were not healthy.
    pub fn allows_another(&self, attempt: u32, in_a_row: u32) -> bool {
        let counted = if self.in_a_row { in_a_row } else { attempt };
        counted < self.max_attempts
    }

    /// How many failures in a row count for the next wait, after an attempt that ran for `ran_ms`: a healthy
    /// one starts the count anew, so that one crash after months does not wait for hours.
    pub fn failures_in_a_row(&self, before: u32, ran_ms: u64) -> u32 {
        if ran_ms >= self.healthy_after_ms {
            1
        } else {
            before.saturating_add(1)
        }
    }

    /// The longest wait after `failures` failures in a row, in ms: exponential, capped.
    pub fn ceiling_ms(&self, failures: u32) -> u64 {
        let doublings = failures.saturating_sub(1).min(63);
        self.backoff_ms
            .saturating_mul(1u64.checked_shl(doublings).unwrap_or(u64::MAX))
            .min(self.max_backoff_ms)
    }

    /// The wait itself, in ms: full jitter, that is anything from 0 to the ceiling, drawn with `random`.
    pub fn delay_ms(&self, failures: u32, random: u64) -> u64 {
        match self.ceiling_ms(failures).checked_add(1) {
            Some(span) => random % span,
            None => random,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap() {
        let retry = Retry::default();
        let ceilings: Vec<u64> = (1..=9).map(|failures| retry.ceiling_ms(failures)).collect();
        assert_eq!(
            ceilings,
            [
                1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000
            ]
        );
        assert_eq!(retry.ceiling_ms(u32::MAX), 60_000);
    }

    #[test]
    fn a_healthy_attempt_starts_the_count_anew() {
        let retry = Retry::default();
        assert_eq!(retry.failures_in_a_row(50, 59_999), 51);
        assert_eq!(retry.failures_in_a_row(50, 60_000), 1);
    }

    #[test]
    fn attempts_are_counted_from_the_last_healthy_one_where_that_is_asked_for() {
        let retry = Retry {
            max_attempts: 3,
            in_a_row: true,
            ..Retry::default()
        };
        assert!(retry.allows_another(100, 2));
        assert!(!retry.allows_another(3, 3));
    }

    #[test]
    fn attempts_are_counted_from_one() {
        let retry = Retry {
            max_attempts: 3,
            ..Retry::default()
        };
        assert!(retry.allows_another(1, 9));
        assert!(retry.allows_another(2, 9));
        assert!(!retry.allows_another(3, 1));
        assert!(
            !Retry {
                max_attempts: 0,
                ..retry
            }
            .allows_another(1, 1)
        );
    }
}
