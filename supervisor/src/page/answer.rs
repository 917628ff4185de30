//! What each address of the page is, and who may ask for it.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_SECURITY_POLICY, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use state_machine::id::JobId;
use state_machine::protocol::look::View;

use super::address::see_that_it_is_meant;
use super::change::{self, Change};
use super::house::House;
use super::jobs::{AsArray, json_of};
use super::log;
use super::metrics;
use super::reply::{Content, Reply, json, refusal, reply, whole};
use super::stream::Stream;

/// The longest body that a request may have, in bytes. None is read.
const LONGEST_BODY: u64 = 4096;

/// Answer a request that came to `here`.
pub(super) async fn answer(house: Rc<House>, here: SocketAddr, asked: Request<Incoming>) -> Reply {
    let mut reply = match refuse(&house, here, &asked) {
        Some(refused) => refused,
        None => route(&house, &asked).await,
    };
    if !asked.body().is_end_stream() {
        // It is not read: nothing more can come over this connection.
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
    }
    if asked.method() == Method::HEAD {
        *reply.body_mut() = Content::Whole(None);
    }
    reply
}

/// Why it is not answered, if it is not.
fn refuse(house: &House, here: SocketAddr, asked: &Request<Incoming>) -> Option<Reply> {
    if let Err(why) = see_that_it_is_meant(asked.headers(), here) {
        return Some(refusal(StatusCode::FORBIDDEN, why));
    }
    if asked.body().size_hint().lower() > LONGEST_BODY {
        let why = "no request has so long a body here";
        return Some(refusal(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    let changes = match *asked.method() {
        Method::GET | Method::HEAD => return None,
        Method::POST => &house.secret,
        _ => return Some(not_allowed("GET, HEAD, POST")),
    };
    match changes {
        None => {
            let why = "this page only shows; start it with --allow-changes or --token-file to change something";
            Some(refusal(StatusCode::FORBIDDEN, why))
        }
        Some(secret) if !secret.is_in(asked.headers()) => {
            let why = "the token is needed: Authorization: Bearer TOKEN";
            Some(refusal(StatusCode::UNAUTHORIZED, why))
        }
        Some(_) => None,
    }
}

async fn route(house: &Rc<House>, asked: &Request<Incoming>) -> Reply {
    let query = asked.uri().query().unwrap_or_default();
    let path = asked.uri().path().strip_prefix('/').unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let posts = asked.method() == Method::POST;
    match (posts, parts.as_slice()) {
        (false, [""]) => page(house),
        (false, ["events"]) => events(house),
        (false, ["events", stream, "follow"]) => follow(house, stream, query),
        (false, ["metrics"]) => {
            let supervised = house.store.is_supervised().unwrap_or(false);
            whole(metrics::KIND, metrics::text(&house.live(), supervised))
        }
        (false, ["api", "jobs"]) => {
            let views = house.live().jobs().cloned().collect();
            let jobs = AsArray::new(house.store.clone(), views);
            reply("application/json", Content::Jobs(jobs))
        }
        (false, ["api", "jobs", id]) => job(house, id),
        (false, ["api", "jobs", id, "log"]) => log_of(house, id, query).await,
        (false, ["api", "pools"]) => json(&house.live().pools()),
        (false, ["api", "slots"]) => json(&house.live().slots()),
        (true, ["api", "jobs", id, verb]) => change(house, id, verb).await,
        (true, _) => not_allowed("GET, HEAD"),
        (false, ["api", "jobs", _, verb]) if Change::parse(verb).is_some() => not_allowed("POST"),
        _ => not_found("there is nothing here"),
    }
}

fn page(house: &House) -> Reply {
    let front = &house.front;
    let mut reply = whole("text/html; charset=utf-8", front.text.clone());
    let policy = front.policy.clone();
    reply.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    reply
}

fn events(house: &Rc<House>) -> Reply {
    match Stream::new(house) {
        Some(stream) => reply("text/event-stream", Content::Stream(stream)),
        None => busy("too many are told of changes already"),
    }
}

/// Have a stream told of the output of the job in the query, or of none.
fn follow(house: &House, stream: &str, query: &str) -> Reply {
    let job = url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, value)| key == "job" && !value.is_empty())
        .map(|(_, value)| value);
    let job = match job.as_deref().map(|id| known(house, id)) {
        Some(None) => return not_found("there is no such job"),
        Some(job) => job,
        None => None,
    };
    let number = stream.parse().unwrap_or(0);
    if house.follow(number, job) {
        json(&serde_json::json!({}))
    } else {
        not_found("there is no such stream")
    }
}

fn job(house: &House, id: &str) -> Reply {
    match JobId::parse(id).ok().and_then(|id| view_of(house, &id)) {
        Some(view) => whole("application/json", json_of(&house.store, &view) + "\n"),
        None => not_found("there is no such job"),
    }
}

async fn log_of(house: &House, id: &str, query: &str) -> Reply {
    let Some(id) = known(house, id) else {
        return not_found("there is no such job");
    };
    let wanted = match log::Wanted::read(query) {
        Ok(wanted) => wanted,
        Err(why) => return refusal(StatusCode::BAD_REQUEST, &why),
    };
    let split = view_of(house, &id).is_some_and(|view| view.descriptor.output.split);
    let store = house.store.clone();
    log::answer(off_the_thread(move || log::read(&store, &id, split, &wanted)).await)
}

async fn change(house: &House, id: &str, verb: &str) -> Reply {
    let Some(change) = Change::parse(verb) else {
        return not_found("pause, resume, stop and restart are what can be done to a job");
    };
    let Some(id) = known(house, id) else {
        return not_found("there is no such job");
    };
    let Ok(room) = house.changing.clone().try_acquire_owned() else {
        return busy("too many changes are under way");
    };
    let store = house.store.clone();
    let made = off_the_thread(move || {
        // Also when nobody waits for the answer any more.
        let _room = room;
        change::make(&store, change, &id)
    });
    change::answer(change, made.await)
}

/// What blocks must not keep others waiting.
async fn off_the_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)?
}

/// The job of this id, if there is one.
fn known(house: &House, id: &str) -> Option<JobId> {
    let id = JobId::parse(id).ok()?;
    view_of(house, &id).is_some().then_some(id)
}

/// A job as it is. One that was made just now may be known to who asks before it is to us.
fn view_of(house: &House, id: &JobId) -> Option<Arc<View>> {
    let seen = house.live().job(id).cloned();
    seen.or_else(|| house.store.job(id).look().ok().map(Arc::new))
}

fn not_found(why: &str) -> Reply {
    refusal(StatusCode::NOT_FOUND, why)
}

fn not_allowed(methods: &'static str) -> Reply {
    let mut reply = refusal(StatusCode::METHOD_NOT_ALLOWED, "that cannot be done here");
    let methods = HeaderValue::from_static(methods);
    reply.headers_mut().insert(ALLOW, methods);
    reply
}

fn busy(why: &str) -> Reply {
    let mut reply = refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    let later = HeaderValue::from_static("2");
    reply.headers_mut().insert(RETRY_AFTER, later);
    reply
}
