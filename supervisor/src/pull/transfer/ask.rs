//! Asking for the bytes of a run, and what the answer means. What is written for it is decided by who asked.

use state_machine::pull::answer::{self, Asked, End, Verdict, strong};
use state_machine::pull::part::Part;
use state_machine::pull::word::Cause;

use crate::pull::http::{Answer, Ask, Http};
use crate::pull::plan::Item;

/// An answer whose body is to be written.
pub(super) struct Opened {
    /// It.
    pub(super) answer: Answer,
    /// Where its body belongs, in bytes from the begin of the file.
    pub(super) from: u64,
    /// Whether its body is the whole, from the first byte.
    pub(super) whole: bool,
    /// How long the whole is, in bytes.
    pub(super) total_bytes: Option<u64>,
    /// The version that it is of, where its server names one.
    pub(super) etag: Option<String>,
    /// Whether parts of it can be asked for.
    pub(super) has_ranges: bool,
    /// Whether the end of its body will be told from a cut.
    pub(super) has_an_end: bool,
}

/// Why there is nothing to be written.
pub(super) enum Refusal {
    /// There is nothing more to come.
    Complete,
    /// What is here is of no use, for this reason.
    Restart(String),
    /// It is to be asked for without a range, for this reason.
    AskWhole(String),
    /// It is to be asked for again, for this reason; not before so many ms, if that is said.
    Later(String, u64),
    /// There is no use in asking again.
    Never(Cause),
}

/// Ask for what is missing in the `nth` run; without a range where `whole` is wanted, which only the first byte on makes sense
/// for.
pub(super) fn ask(
    http: &Http,
    item: &Item,
    part: &Part,
    nth: usize,
    whole: bool,
) -> Result<Opened, Refusal> {
    let run = part.runs[nth];
    let from = run.from + run.done;
    let is_split = part.runs.len() > 1;
    let is_ranged = !whole && (from > 0 || is_split);
    let mut headers = Vec::new();
    if is_ranged {
        let until = match part.end_of(nth) {
            Some(end) if is_split => (end - 1).to_string(),
            _ => String::new(),
        };
        headers.push(("Range", format!("bytes={from}-{until}")));
        if let Some(etag) = &part.etag {
            headers.push(("If-Range", etag.clone()));
        }
    }
    let asked = Asked {
        from: is_ranged.then_some(from),
        etag: part.etag.as_deref().filter(|_| is_ranged),
        total_bytes: part
            .total_bytes
            .filter(|_| is_ranged || item.size.is_some()),
        has_digest: item.digest.is_some(),
        is_as_sent: item.is_as_sent,
    };
    let ask = Ask {
        headers: &headers,
        ..Ask::get(&item.url, &*item.access)
    };
    let answer = http.ask(&ask).map_err(|cause| match cause {
        Cause::Later { why, after_ms } => Refusal::Later(why, after_ms),
        cause => Refusal::Never(cause),
    })?;
    let said = |name| answer.header(name);
    let etag = strong(said("etag")).map(str::to_owned);
    let (content_encoding, transfer_encoding) = (
        answer.every("content-encoding"),
        answer.every("transfer-encoding"),
    );
    let judged = answer::Answer {
        status: answer.status(),
        content_range: said("content-range"),
        content_encoding: content_encoding.as_deref(),
        transfer_encoding: transfer_encoding.as_deref(),
        is_http10: answer.is_http10(),
        content_type: said("content-type"),
        content_length: answer.content_length(),
        etag: said("etag"),
        redirected: answer.redirected,
    };
    let verdict = judged.judge(&asked);
    let has_an_end = !matches!(judged.end(), Ok(End::Close));
    let has_ranges = said("accept-ranges").is_some_and(|it| it.eq_ignore_ascii_case("bytes"));
    let after_ms = answer.retry_after_ms();
    let message = answer.message().map(str::to_owned);
    let opened = |whole, total_bytes| Opened {
        answer,
        from: if whole { 0 } else { from },
        whole,
        total_bytes,
        etag,
        has_ranges,
        has_an_end,
    };
    match verdict {
        Verdict::Append { total_bytes } => Ok(opened(false, total_bytes)),
        Verdict::Whole { total_bytes } => Ok(opened(true, total_bytes)),
        Verdict::Complete => Err(Refusal::Complete),
        Verdict::Restart(why) => Err(Refusal::Restart(why)),
        Verdict::AskWhole(why) => Err(Refusal::AskWhole(why)),
        Verdict::AskOrigin(why) => Err(Refusal::Later(why, 0)),
        Verdict::Later(why) => Err(Refusal::Later(why, after_ms)),
        Verdict::Never(why) => {
            let url = crate::pull::http::shown(&item.url);
            let message = message.map_or(String::new(), |it| format!("; the server says: {it}"));
            Err(Refusal::Never(Cause::Never {
                why: format!("{url}: {why}{message}"),
            }))
        }
    }
}
