//! What is said to one request.

use std::sync::Arc;

use crate::server::{Reply, Request, Served};

/// An answer, before it is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    /// The status code.
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// How long the body is said to be, where that is a lie.
    announced: Option<usize>,
}

impl Said {
    /// Nothing but this.
    pub(super) fn of(status: u16) -> Said {
        Said {
            status,
            ..Said::default()
        }
    }

    /// A text.
    pub(super) fn text(status: u16, text: impl Into<Vec<u8>>) -> Said {
        Said {
            body: text.into(),
            ..Said::of(status)
        }
    }

    /// The bytes of a file, or the range of them that was asked for.
    pub(super) fn file(request: &Request, bytes: &[u8], etag: &str) -> Said {
        let served = Served {
            bytes: Arc::new(bytes.to_vec()),
            etag: Some(etag.to_owned()),
        };
        let (status, headers, body) = served.honest(request);
        Said {
            headers,
            ..Said::text(status, body)
        }
    }

    /// With this header too.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: &str) -> Said {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a length that is not that of its body.
    #[must_use]
    pub(super) fn announcing(mut self, length: usize) -> Said {
        self.announced = Some(length);
        self
    }

    /// Only half of it, as of a connection that is cut.
    #[must_use]
    pub(super) fn cut(mut self) -> Said {
        let length = self.body.len();
        self.body.truncate(length / 2);
        self.announcing(length)
    }

    /// Send it.
    pub(super) fn send(&self, request: &Request, reply: &mut Reply) {
        let length = self.announced.unwrap_or(self.body.len()).to_string();
        let mut headers = vec![("Content-Length", length.as_str())];
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        reply.head(self.status, &headers);
        if request.method != "HEAD" {
            reply.body(&self.body);
        }
    }
}

/// The path of a request, its escapes undone, and its query.
pub(super) fn split(request: &Request) -> (String, &str) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits: Vec<u8> = rest.by_ref().take(2).collect();
            let digits = std::str::from_utf8(&digits).expect("an escape is text");
            bytes.push(u8::from_str_radix(digits, 16).expect("an escape is two digits"));
        } else {
            bytes.push(byte);
        }
    }
    (String::from_utf8(bytes).expect("a path is text"), query)
}

/// The value of a name in a query, as it came.
pub(super) fn asked<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
}
