//! Instants, as people write them on the command line.

use jiff::ZonedDateTime;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use crate::error::{Error, Result};

/// An instant in ms since the epoch: with a zone or an offset, a local date and time, or a local time of day, which is the
/// next one to come.
pub(super) fn instant_ms(text: &str) -> Result<u64> {
    let bad = || {
        Error::Usage(format!(
            "'{text}' is no instant; write 2026-12-24T18:00, 2026-12-24T18:00Z or 18:30"
        ))
    };
    let ms = if let Ok(stamp) = text.parse::<jiff::Timestamp>() {
        stamp.as_millisecond()
    } else if let Ok(zoned) = text.parse::<ZonedDateTime>() {
        zoned.timestamp().as_millisecond()
    } else if let Ok(local) = text.parse::<DateTime>() {
        zoned(local).ok_or_else(bad)?
    } else if let Ok(time) = text.parse::<Time>() {
        next(time).ok_or_else(bad)?
    } else {
        return Err(bad());
    };
    u64::try_from(ms).map_err(|_| bad())
}

fn zoned(local: DateTime) -> Option<i64> {
    let zoned = local.to_zoned_datetime(TimeZone::system()).ok()?;
    Some(zoned.timestamp().as_millisecond())
}

/// The next time that a clock on the wall shows this.
fn next(time: Time) -> Option<i64> {
    let now = ZonedDateTime::now();
    let today = now.date().to_datetime(time);
    let day = if today > now.datetime() {
        today
    } else {
        today.tomorrow().ok()?
    };
    zoned(day)
}
