//! Instants as people read them in a record: RFC 3339, in UTC, to the millisecond. Which instant it is now is never known here.

use jiff::Timestamp;

/// The stamp of an instant, in ms since the epoch.
pub fn of_ms(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).unwrap_or(i64::MAX);
    // What is beyond the calendar is the end of it: a stamp is always written, as an attempt always is (R17).
    Timestamp::from_millisecond(at)
        .unwrap_or(Timestamp::MAX)
        .to_string()
}

/// The instant that a stamp names, in ms since the epoch; `None` for one that names none, or one before that.
pub fn to_ms(stamp: &str) -> Option<u64> {
    let at: Timestamp = stamp.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_names_its_instant() {
        assert_eq!(of_ms(1_795_000_000_000), "2026-11-18T11:06:40Z");
        assert_eq!(of_ms(1_795_000_000_123), "2026-11-18T11:06:40.123Z");
        assert_eq!(to_ms("2026-11-18T11:06:40.123Z"), Some(1_795_000_000_123));
        assert_eq!(to_ms("2026-11-18T11:06:40Z"), Some(1_795_000_000_000));
        assert_eq!(to_ms("2026-11-18T12:06:40+01:00"), Some(1_795_000_000_000));
    }

    #[test]
    fn what_names_no_instant_is_none() {
        for stamp in [
            "",
            "yesterday",
            "2026-13-40T00:00:00Z",
            "1795000000",
            "1960-01-01T00:00:00Z",
        ] {
            assert_eq!(to_ms(stamp), None, "{stamp}");
        }
        assert!(to_ms(&of_ms(u64::MAX)).is_some());
    }
}
