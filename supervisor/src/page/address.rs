//! Where a page may be listened for, and whether a request was meant for it: a page of somebody else's that a browser shows, or a name that
//! was made to lead here, must reach nothing. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, ORIGIN};

/// What HTTP takes for granted where an address has no port.
const USUAL_PORT: u16 = 80;
/// Where a browser says who made the page do it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The loopback address that a word names: `127.0.0.1:PORT`, `[::1]:PORT`, `localhost:PORT`, or `PORT` alone.
///
/// # Errors
///
/// In words, where it is none, or one that others can reach.
pub(crate) fn loopback(word: &str) -> Result<SocketAddr, String> {
    let port = word.strip_prefix("localhost:").unwrap_or(word);
    if let Ok(port) = port.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let address: SocketAddr = word
        .parse()
        .map_err(|_| format!("'{word}' is no address; write 127.0.0.1:PORT"))?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!(
            "{address} can be reached from elsewhere; the page is for this machine only, listen on 127.0.0.1:{}",
            address.port()
        ))
    }
}

/// Whether a request with these headers, over a connection to `here`, is meant for this page and comes from nobody else's.
///
/// # Errors
///
/// Why it is not.
pub(super) fn see_that_it_is_meant(
    headers: &HeaderMap,
    here: SocketAddr,
) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err("one Host is needed");
    };
    if !host.to_str().is_ok_and(|host| is_here(host, here)) {
        return Err("the Host is not this page's address");
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().ok();
        let host = origin.and_then(|origin| origin.strip_prefix("http://"));
        if !host.is_some_and(|host| is_here(host, here)) {
            return Err("it comes from another page");
        }
    }
    for site in headers.get_all(FETCH_SITE) {
        // `none` is a person who typed the address.
        if site != "same-origin" && site != "none" {
            return Err("it comes from another page");
        }
    }
    Ok(())
}

/// Whether that is a loopback name, with our port.
fn is_here(host: &str, here: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(USUAL_PORT)),
    };
    let is_name = name.eq_ignore_ascii_case("localhost")
        || name.parse() == Ok(Ipv4Addr::LOCALHOST)
        || name == format!("[{}]", Ipv6Addr::LOCALHOST)
        || name.parse::<IpAddr>() == Ok(here.ip());
    is_name && port == Some(here.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_listened_on() {
        let good = |word: &str| loopback(word).unwrap().to_string();
        assert_eq!(good("127.0.0.1:0"), "127.0.0.1:0");
        assert_eq!(good("127.9.8.7:81"), "127.9.8.7:81");
        assert_eq!(good("[::1]:81"), "[::1]:81");
        assert_eq!(good("localhost:81"), "127.0.0.1:81");
        assert_eq!(good("81"), "127.0.0.1:81");
        for bad in [
            "0.0.0.0:81",
            "[::]:81",
            "10.0.0.1:81",
            "[::ffff:127.0.0.1]:81",
            "example.org:81",
            "127.0.0.1",
            "",
        ] {
            assert!(loopback(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_request_is_meant_for_here_or_refused() {
        let here = SocketAddr::from(([127, 0, 0, 1], 4000));
        let meant = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            see_that_it_is_meant(&headers, here).is_ok()
        };
        for host in [
            "127.0.0.1:4000",
            "localhost:4000",
            "LOCALHOST:4000",
            "[::1]:4000",
        ] {
            assert!(meant(&[("host", host)]), "{host}");
            let origin = format!("http://{host}");
            assert!(meant(&[("host", host), ("origin", &origin)]), "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:4001",
            "evil.example:4000",
            "localhost.evil.example:4000",
            "127.0.0.1.evil.example:4000",
            "[::1]",
            ":4000",
            "",
            "127.0.0.1:4000:4000",
        ] {
            assert!(!meant(&[("host", host)]), "{host}");
        }
        let host = ("host", "localhost:4000");
        assert!(!meant(&[]));
        assert!(!meant(&[host, host]));
        for origin in [
            "null",
            "http://evil.example",
            "https://localhost:4000",
            "http://localhost:4001",
        ] {
            assert!(!meant(&[host, ("origin", origin)]), "{origin}");
        }
        assert!(meant(&[host, ("sec-fetch-site", "none")]));
        assert!(meant(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(!meant(&[host, ("sec-fetch-site", "same-site")]));
        assert!(!meant(&[host, ("sec-fetch-site", "cross-site")]));
    }
}
