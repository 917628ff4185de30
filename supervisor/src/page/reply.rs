//! An answer: its status, its headers, and its body, which is whole or comes in pieces that are made when there is room for them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::jobs::AsArray;
use super::stream::Stream;

/// An answer.
pub(super) type Reply = Response<Content>;

/// What nothing but the page needs: nothing.
const NOTHING_ALLOWED: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// What is sent.
#[derive(Debug)]
pub(super) enum Content {
    /// This, whole; nothing once it was sent.
    Whole(Option<Bytes>),
    /// Jobs, a few at a time.
    Jobs(AsArray),
    /// What changes, as long as somebody reads it.
    Stream(Stream),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Content::Whole(bytes) => bytes.take(),
            Content::Jobs(jobs) => jobs.next(),
            Content::Stream(stream) => match stream.poll(context) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            _ => SizeHint::default(),
        }
    }
}

/// An answer of this type. Nobody keeps it, guesses what it is, or shows it inside of a page of his own.
pub(super) fn reply(kind: &'static str, content: Content) -> Reply {
    let mut reply = Response::new(content);
    let headers = reply.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(CONTENT_TYPE, fixed(kind));
    headers.insert(CACHE_CONTROL, fixed("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, NOTHING_ALLOWED);
    headers.insert(X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(X_FRAME_OPTIONS, fixed("DENY"));
    headers.insert(REFERRER_POLICY, fixed("no-referrer"));
    for name in ["cross-origin-resource-policy", "cross-origin-opener-policy"] {
        headers.insert(HeaderName::from_static(name), fixed("same-origin"));
    }
    reply
}

/// The same, of these bytes.
pub(super) fn whole(kind: &'static str, bytes: impl Into<Bytes>) -> Reply {
    reply(kind, Content::Whole(Some(bytes.into())))
}

/// A value as JSON.
pub(super) fn json<T: Serialize>(value: &T) -> Reply {
    match serde_json::to_vec(value) {
        Ok(bytes) => whole("application/json", bytes),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Why not, as JSON.
pub(super) fn refusal(status: StatusCode, why: &str) -> Reply {
    let mut text = serde_json::json!({ "error": why }).to_string();
    text.push('\n');
    let mut reply = whole("application/json", text);
    *reply.status_mut() = status;
    reply
}
