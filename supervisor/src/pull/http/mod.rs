//! Requests for files and for what is said about them. A redirect is followed here and nowhere else, so that a secret is only
//! ever told to whom it was given for.
//!
//! Nothing is decoded: what is written and hashed is what came over the wire.

mod access;
mod trouble;

use std::io::Read;
use std::time::Duration;

use state_machine::pull::word::Cause;
use ureq::http::{HeaderMap, Response, Version, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, BodyReader};
use url::Url;

pub(super) use self::access::{Access, Bearer, Public, Refused};
pub(super) use self::trouble::{later, never};

/// How long a connection may be silent where nobody says, in ms.
pub(super) const IDLE_MS: u64 = 30_000;
/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// How often something else is shown to a host that refuses what it was shown: what is new may run out before it is used.
const RENEWALS: usize = 3;
/// How many redirects are followed.
const REDIRECTS: usize = 10;
/// How much is read of an answer that is not a file, in bytes.
const TEXT_LIMIT: u64 = 64 << 20;
/// How much is read at once, in bytes.
const BUFFER: usize = 128 << 10;
/// How much is shown of what a server says to people, in characters.
const LONGEST_MESSAGE: usize = 300;
/// No server's wish to be left alone counts for longer, in ms.
const LONGEST_WISH_MS: u64 = 3_600_000;

/// Makes requests.
#[derive(Clone)]
pub(super) struct Http {
    agent: Agent,
}

/// What is asked for.
pub(super) struct Ask<'a> {
    /// `GET` or `HEAD`.
    pub(super) method: &'static str,
    /// The address.
    pub(super) url: &'a Url,
    /// What is said besides, to whoever answers in the end.
    pub(super) headers: &'a [(&'a str, String)],
    /// Who may be told who asks.
    pub(super) access: &'a dyn Access,
    /// Whether a redirect to another host is followed.
    pub(super) follow: bool,
}

impl<'a> Ask<'a> {
    /// A `GET` that follows every redirect.
    pub(super) fn get(url: &'a Url, access: &'a dyn Access) -> Ask<'a> {
        Ask {
            method: "GET",
            url,
            headers: &[],
            access,
            follow: true,
        }
    }
}

/// An answer, before its body was read.
pub(super) struct Answer {
    response: Response<Body>,
    /// Where it came from.
    pub(super) url: Url,
    /// Whether that is another host than the one that was asked.
    pub(super) redirected: bool,
}

impl Http {
    /// A client whose connections may be silent for `idle`. Proxies and authorities are those of the environment.
    ///
    /// # Errors
    ///
    /// When the file that `SSL_CERT_FILE` names cannot be used.
    pub(super) fn new(idle: Duration) -> Result<Http, Cause> {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .accept_encoding("identity")
            .user_agent(concat!("outlive/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(idle))
            .timeout_per_read(Some(idle))
            .timeout_per_write(Some(idle))
            .input_buffer_size(BUFFER)
            // What comes before an answer may be read together with much of it, and would count as too long otherwise.
            .max_response_header_size(BUFFER)
            .tls_config(tls()?)
            .build()
            .new_agent();
        Ok(Http { agent })
    }

    /// Ask, and follow where that leads.
    ///
    /// # Errors
    ///
    /// When nobody answers, or the redirects lead nowhere. Any status is an answer.
    pub(super) fn ask(&self, ask: &Ask<'_>) -> Result<Answer, Cause> {
        let mut url = ask.url.clone();
        let (mut renewals, mut redirects) = (0, 0);
        while redirects <= REDIRECTS {
            let is_origin = url.origin() == ask.url.origin();
            // Whoever a redirect leads to was not given the secret, and some refuse whoever shows two.
            let shown = if is_origin { ask.access.header() } else { None };
            let response = self.ask_once(ask, &url, shown.as_deref())?;
            let status = response.status().as_u16();
            if status == 401 && is_origin && renewals < RENEWALS {
                renewals += 1;
                let refused = Refused {
                    shown: shown.as_deref(),
                    challenge: &all_of(response.headers(), "www-authenticate"),
                };
                if ask.access.renew(self, &refused)? {
                    continue;
                }
            }
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                let redirected = !is_origin;
                return Ok(Answer {
                    response,
                    url,
                    redirected,
                });
            }
            let to = next(&url, response.headers())?;
            if !ask.follow && to.origin() != ask.url.origin() {
                let redirected = false;
                return Ok(Answer {
                    response,
                    url,
                    redirected,
                });
            }
            url = to;
            redirects += 1;
        }
        Err(never(format!("{} redirects too often", shown(ask.url))))
    }

    fn ask_once(
        &self,
        ask: &Ask<'_>,
        url: &Url,
        shown: Option<&str>,
    ) -> Result<Response<Body>, Cause> {
        let mut request = ureq::http::Request::builder()
            .method(ask.method)
            .uri(url.as_str());
        for (name, value) in ask.headers {
            request = request.header(*name, value);
        }
        if let Some(secret) = shown {
            request = request.header(header::AUTHORIZATION, secret);
        }
        let request = request
            .body(())
            .map_err(|error| never(format!("{} cannot be asked for: {error}", self::shown(url))))?;
        self.agent
            .run(request)
            .map_err(|error| trouble::of(&error, url))
    }
}

impl Answer {
    /// The status code.
    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header, where it is there once and is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        text_of(self.response.headers(), name)
    }

    /// Every header of this name, with commas between them; what is no text is something else than any text.
    pub(super) fn every(&self, name: &str) -> Option<String> {
        let all: Vec<_> = self
            .response
            .headers()
            .get_all(name)
            .iter()
            .map(|it| String::from_utf8_lossy(it.as_bytes()))
            .collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Whether it is one of HTTP/1.0 or before.
    pub(super) fn is_http10(&self) -> bool {
        self.response.version() <= Version::HTTP_10
    }

    /// What a hub says besides, for people.
    pub(super) fn message(&self) -> Option<&str> {
        let text = self.header("x-error-message")?;
        let end = text
            .char_indices()
            .nth(LONGEST_MESSAGE)
            .map_or(text.len(), |it| it.0);
        Some(&text[..end]).filter(|text| !text.is_empty())
    }

    /// How long the body is by its header, in bytes.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }

    /// How long the server wants to be left alone, in ms.
    pub(super) fn retry_after_ms(&self) -> u64 {
        let wish = match (self.header("retry-after"), self.header("ratelimit")) {
            (Some(text), _) => trouble::wish_ms(text),
            (None, Some(text)) if self.status() == 429 => trouble::reset_ms(text),
            _ => 0,
        };
        wish.min(LONGEST_WISH_MS)
    }

    /// The body.
    pub(super) fn body(&mut self) -> BodyReader<'_> {
        self.response
            .body_mut()
            .with_config()
            .limit(u64::MAX)
            .reader()
    }

    /// It, and the whole of its text.
    pub(super) fn into_text(mut self) -> Result<(Answer, Vec<u8>), Cause> {
        let text = self.read(TEXT_LIMIT)?;
        Ok((self, text))
    }

    /// The whole body, of a text.
    pub(super) fn read(&mut self, limit: u64) -> Result<Vec<u8>, Cause> {
        let url = shown(&self.url);
        let mut text = Vec::new();
        let read = self.body().take(limit + 1).read_to_end(&mut text);
        read.map_err(|error| later(format!("the answer of {url} was cut: {error}")))?;
        if text.len() as u64 > limit {
            return Err(never(format!(
                "the answer of {url} is longer than {limit} bytes"
            )));
        }
        Ok(text)
    }

    /// Why this answer is none that can be used. Its body is not read: servers lie about the length of those (PULLS).
    pub(super) fn refusal(&self) -> Cause {
        use state_machine::pull::answer::{Answer, Asked, Verdict};
        let asked = Asked {
            from: None,
            etag: None,
            total_bytes: None,
            has_digest: false,
            is_as_sent: false,
        };
        let status = self.status();
        let answer = Answer {
            status,
            ..Answer::default()
        };
        let url = shown(&self.url);
        match answer.judge(&asked) {
            Verdict::Later(why) => Cause::Later {
                why: format!("{url}: {why}"),
                after_ms: self.retry_after_ms(),
            },
            Verdict::Never(why) => never(format!("{url}: {why}")),
            _ => never(format!("{url}: the server answered {status}")),
        }
    }
}

/// Where a redirect leads.
fn next(url: &Url, headers: &HeaderMap) -> Result<Url, Cause> {
    let location = text_of(headers, "location")
        .ok_or_else(|| never(format!("{} redirects to nowhere", shown(url))))?;
    let to = url
        .join(location)
        .map_err(|error| never(format!("{} redirects to no address: {error}", shown(url))))?;
    match (url.scheme(), to.scheme()) {
        ("https", "https") | ("http", "http" | "https") => Ok(to),
        ("https", "http") => Err(never(format!(
            "{} redirects to {}, which is not encrypted; that is not followed",
            shown(url),
            shown(&to)
        ))),
        (_, other) => Err(never(format!(
            "{} redirects to {other}:, which cannot be asked",
            shown(url)
        ))),
    }
}

/// An address without what may be secret in it: who asks, and the signature in its query.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Fails only for addresses that have no host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// An address as it was asked for, without who asks. What a user has put into its query is part of what it names.
pub(super) fn shown_whole(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    // Fails only for addresses that have no host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// Every header of this name, with commas between them: that means the same (RFC 9110, section 5.3).
fn all_of(headers: &HeaderMap, name: &str) -> String {
    let all: Vec<&str> = headers
        .get_all(name)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .collect();
    all.join(", ")
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Which authorities vouch for servers: those of the file that `SSL_CERT_FILE` names, as other tools have it, else Mozilla's.
fn tls() -> Result<TlsConfig, Cause> {
    let Some(path) = std::env::var_os("SSL_CERT_FILE").filter(|it| !it.is_empty()) else {
        return Ok(TlsConfig::default());
    };
    let shown = path.display();
    let pem = std::fs::read(&path)
        .map_err(|error| never(format!("SSL_CERT_FILE: cannot read {shown}: {error}")))?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(never(format!(
            "SSL_CERT_FILE: {shown} holds no certificate"
        )));
    }
    let roots = RootCerts::new_with_certs(&certificates);
    Ok(TlsConfig::builder().root_certs(roots).build())
}
