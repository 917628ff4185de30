//! What it means when a request gets no answer.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::CertificateError;
use state_machine::pull::word::Cause;
use url::Url;

use super::shown;
use crate::clock;

/// It can go better the next time.
pub(in crate::pull) fn later(why: impl Into<String>) -> Cause {
    Cause::Later {
        why: why.into(),
        after_ms: 0,
    }
}

/// It would go the same way every time.
pub(in crate::pull) fn never(why: impl Into<String>) -> Cause {
    Cause::Never { why: why.into() }
}

/// What an error of the client means: what a network does is temporary, what was asked for is not.
pub(super) fn of(error: &ureq::Error, url: &Url) -> Cause {
    let shown = shown(url);
    match error {
        ureq::Error::HostNotFound => later(format!("{shown}: there is no such host")),
        ureq::Error::Timeout(what) => later(format!("{shown}: nothing came in time ({what})")),
        ureq::Error::Io(error) => match distrust(error) {
            Some(why) => never(format!("{shown}: the server cannot be trusted: {why}")),
            None => later(format!("{shown}: {error}")),
        },
        ureq::Error::ConnectionFailed => later(format!("{shown}: no connection")),
        ureq::Error::Protocol(error) => {
            later(format!("{shown}: the server does not speak HTTP: {error}"))
        }
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => never(format!("{shown}: {error}")),
        _ => later(format!("{shown}: {error}")),
    }
}

/// Why the server's certificate does not hold, where that is what is wrong: it comes wrapped as an error of the connection.
fn distrust(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(why) = error else {
        return None;
    };
    Some(match why {
        CertificateError::UnknownIssuer => {
            "no authority that is trusted vouches for it; SSL_CERT_FILE names a file of those that are".into()
        }
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority; a server needs one of its own, which the authority vouches for".into()
        }
        why => why.to_string(),
    })
}

/// A number of seconds; one that is too long to be counted is the longest.
fn seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// What `Retry-After` asks for, in ms: a number of seconds, or a date (RFC 9110, section 10.2.3).
pub(super) fn wish_ms(text: &str) -> u64 {
    let text = text.trim();
    if let Some(seconds) = seconds(text) {
        return seconds.saturating_mul(1000);
    }
    let Ok(date) = httpdate::parse_http_date(text) else {
        return 0;
    };
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ms = u64::try_from(since_epoch(date).as_millis()).unwrap_or(u64::MAX);
    at_ms.saturating_sub(clock::now_ms())
}

/// What `RateLimit: "api";r=0;t=55` asks for, in ms: the seconds until there is something left of the limit.
pub(super) fn reset_ms(text: &str) -> u64 {
    let reset = text.split(';').find_map(|it| it.trim().strip_prefix("t="));
    reset
        .and_then(seconds)
        .map_or(0, |it| it.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_an_authority_is_told_in_words() {
        #[derive(Debug, thiserror::Error)]
        #[error("CaUsedAsEndEntity")]
        struct Ca;
        let why = CertificateError::Other(rustls::OtherError(std::sync::Arc::new(Ca)));
        let error = io::Error::other(rustls::Error::InvalidCertificate(why));
        let why = distrust(&error).unwrap();
        assert!(why.contains("that of an authority"), "{why}");
    }

    #[test]
    fn a_wish_is_seconds_or_a_date() {
        assert_eq!(wish_ms("3"), 3_000);
        assert_eq!(wish_ms(" 0 "), 0);
        assert_eq!(wish_ms("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
        assert_eq!(wish_ms("soon"), 0);
        assert_eq!(wish_ms("-3"), 0);
        assert_eq!(wish_ms("99999999999999999999"), u64::MAX);
        let ahead = SystemTime::now() + std::time::Duration::from_secs(100);
        let wish = wish_ms(&httpdate::fmt_http_date(ahead));
        assert!((90_000..=101_000).contains(&wish), "{wish}");
        assert_eq!(reset_ms("\"api\";r=0;t=55"), 55_000);
        assert_eq!(reset_ms("\"api\";r=0"), 0);
    }
}
