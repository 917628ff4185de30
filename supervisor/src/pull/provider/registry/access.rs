//! Who asks a registry: nobody, a user with a password, or whoever holds a token that the registry sends us for. Tokens are short
//! of life, and a new one is fetched when the old one is refused.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use state_machine::pull::word::Cause;
use url::Url;

use super::challenge::Challenge;
use super::login::Logins;
use crate::pull::http::{Access, Ask, Http, Refused, never, shown};

/// Where the registry of docker sends for tokens, on another host than its own.
const DOCKER: (&str, &str) = ("registry-1.docker.io", "auth.docker.io");

/// What is shown to one registry for one name.
pub(super) struct Session {
    /// The registry.
    root: Url,
    name: String,
    logins: Logins,
    shown: Mutex<Option<String>>,
}

/// A secret as it stands after `Basic`.
struct Basic(Option<String>);

impl Access for Basic {
    fn header(&self) -> Option<String> {
        self.0.as_ref().map(|secret| format!("Basic {secret}"))
    }
}

/// What is answered where tokens are given.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Session {
    pub(super) fn new(root: Url, name: &str, logins: Logins) -> Session {
        Session {
            root,
            name: name.to_owned(),
            logins,
            shown: Mutex::default(),
        }
    }

    /// What could be done where the registry does not let us.
    pub(super) fn advice(&self) -> String {
        let host = authority(&self.root);
        match self.logins.of(&host, &self.name) {
            Some(_) => format!("the user that is logged in at {host} may not have it"),
            None => self.logins.advice(&host),
        }
    }

    /// Fetch a token from where the registry sends us.
    fn token(&self, http: &Http, challenge: &Challenge) -> Result<String, Cause> {
        let host = authority(&self.root);
        let realm = challenge.parameter("realm").unwrap_or_default();
        let mut url = Url::parse(realm).map_err(|_| {
            never(format!(
                "{host} sends us for a token to {realm:?}, which is no address"
            ))
        })?;
        self.may_be_asked(&url)?;
        let scope = format!("repository:{}:pull", self.name);
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = challenge.parameter("service") {
                query.append_pair("service", service);
            }
            // Never more than reading, whatever is asked for.
            query.append_pair("scope", &scope);
        }
        let secret = self.secret_for(&url);
        let access = Basic(secret);
        let answer = http.ask(&Ask::get(&url, &access))?;
        match answer.status() {
            200 => {}
            400 | 401 | 403 | 404 => return Err(never(self.refused(&url, access.0.is_some()))),
            _ => return Err(answer.refusal()),
        }
        let (_, text) = answer.into_text()?;
        let token: Option<Token> = serde_json::from_slice(&text).ok();
        token
            .and_then(|it| it.token.or(it.access_token))
            .filter(|token| !token.is_empty() && token.bytes().all(|it| it.is_ascii_graphic()))
            .ok_or_else(|| never(format!("{} gives no token", shown(&url))))
    }

    /// A secret goes over an encrypted connection, or not farther than the registry itself.
    fn may_be_asked(&self, realm: &Url) -> Result<(), Cause> {
        let is_here = self.root.scheme() == "http" && realm.host() == self.root.host();
        if realm.scheme() == "https" || (realm.scheme() == "http" && is_here) {
            return Ok(());
        }
        Err(never(format!(
            "{} sends us for a token to {}, which is not encrypted; it was not asked",
            authority(&self.root),
            shown(realm)
        )))
    }

    /// Who asks for a token: a registry could send us anywhere, so its user's credentials go to the registry itself; those for
    /// another host are what the user has for that one.
    fn secret_for(&self, realm: &Url) -> Option<String> {
        let (registry, other) = (authority(&self.root), authority(realm));
        let is_docker = realm.scheme() == "https" && (registry.as_str(), other.as_str()) == DOCKER;
        if realm.origin() == self.root.origin() || is_docker {
            self.logins.of(&registry, &self.name)
        } else {
            self.logins.of(&other, &self.name)
        }
    }

    fn refused(&self, realm: &Url, had_secret: bool) -> String {
        let (registry, other) = (authority(&self.root), authority(realm));
        let is_elsewhere = registry != other && self.logins.of(&registry, &self.name).is_some();
        if had_secret {
            format!("{other} does not know the user that is logged in there; log in again")
        } else if is_elsewhere {
            format!(
                "{registry} sends us for a token to {other}, another host, which was not told the credentials for {registry}; \
                 if that host may have them, log in there too"
            )
        } else {
            format!(
                "{other} gives no token to whoever has not logged in; {}",
                self.logins.advice(&registry)
            )
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<String>> {
        // It is replaced in one statement.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Access for Session {
    fn header(&self) -> Option<String> {
        self.held().clone()
    }

    fn renew(&self, http: &Http, refused: &Refused<'_>) -> Result<bool, Cause> {
        // Whoever asks meanwhile waits here for the new one.
        let mut held = self.held();
        if held.as_deref() != refused.shown {
            return Ok(true);
        }
        let challenges = Challenge::all(refused.challenge);
        let of = |scheme: &str| challenges.iter().find(|it| it.scheme == scheme);
        let new = if let Some(bearer) = of("bearer") {
            Some(format!("Bearer {}", self.token(http, bearer)?))
        } else if of("basic").is_some() {
            let secret = self.logins.of(&authority(&self.root), &self.name);
            secret.map(|secret| format!("Basic {secret}"))
        } else {
            None
        };
        let is_new = new.is_some() && new.as_deref() != refused.shown;
        if is_new {
            *held = new;
        }
        Ok(is_new)
    }
}

/// Host and port, the port only where it is not the usual one.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(root: &str) -> Session {
        Session::new(Url::parse(root).unwrap(), "a/b", Logins::default())
    }

    #[test]
    fn a_token_is_not_asked_for_in_the_clear() {
        let may = |root: &str, realm: &str| {
            session(root)
                .may_be_asked(&Url::parse(realm).unwrap())
                .is_ok()
        };
        assert!(may("https://r.example/", "https://auth.example/token"));
        assert!(may("http://127.0.0.1:5000/", "http://127.0.0.1:5001/token"));
        assert!(may("http://127.0.0.1:5000/", "https://auth.example/token"));
        assert!(!may("https://r.example/", "http://r.example/token"));
        assert!(!may("http://127.0.0.1:5000/", "http://auth.example/token"));
        assert!(!may("https://r.example/", "ftp://r.example/token"));
    }
}
