//! The page: one text, with everything in it, and the policy under which a browser shows it. Only what stands here may run there: its style and
//! its script are allowed by what they come to.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};

const HTML: &str = include_str!("front/page.html");
const STYLE: &str = include_str!("front/page.css");
const SCRIPT: &str = include_str!("front/page.js");

/// The page.
#[derive(Debug)]
pub(super) struct Front {
    /// Its text.
    pub(super) text: Bytes,
    /// Its `Content-Security-Policy`.
    pub(super) policy: HeaderValue,
}

impl Front {
    /// Put it together.
    pub(super) fn new() -> Front {
        let text = HTML
            .replace("/*STYLE*/", STYLE)
            .replace("/*SCRIPT*/", SCRIPT);
        let digest = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
        let policy = format!(
            "default-src 'none'; img-src data:; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            digest(SCRIPT),
            digest(STYLE)
        );
        Front {
            text: text.into(),
            policy: HeaderValue::from_str(&policy)
                .unwrap_or_else(|_| unreachable!("a policy of plain ASCII")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_it_and_nothing_leads_elsewhere() {
        let front = Front::new();
        let text = std::str::from_utf8(&front.text).unwrap();
        assert!(text.contains(&format!("<style>{STYLE}</style>")));
        assert!(text.contains(&format!("<script>{SCRIPT}</script>")));
        for word in [
            "src=",
            "href=\"http",
            "url(",
            "@import",
            "style=",
            "onclick=",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            assert!(!text.contains(word), "{word}");
        }
        assert!(text.len() < 64 << 10);
    }
}
