//! What images and models share: a registry, the manifests in it, and who asks for them (PULLS). A manifest is what its digest
//! says, whatever a server answers.

mod access;
mod challenge;
mod login;
mod manifest;
mod wanted;

use std::sync::{Arc, Mutex, PoisonError};

use state_machine::pull::word::Cause;
use url::{Host, Url};

use self::access::Session;
use self::login::Logins;
pub(super) use self::manifest::{Descriptor, Kind, Manifest, Platform, TYPES};
pub(super) use self::wanted::{Wanted, written_down};
use super::Variables;
use crate::pull::digest::{Digest, sha256};
use crate::pull::http::{Access, Ask, Http, never};
use crate::pull::plan::Item;

/// No manifest is longer, in bytes: registries need not take longer ones (OCI distribution, "Pushing Manifests").
const LONGEST: u64 = 4 << 20;

/// One name in a registry.
pub(super) struct Registry {
    /// Everything before `/manifests` and `/blobs`.
    base: String,
    /// What the name is called by people.
    shown: String,
    session: Arc<Session>,
    /// The last manifest that came. Registries count how often they are asked for one.
    last: Mutex<Option<Found>>,
}

/// A manifest as it came.
#[derive(Clone)]
pub(super) struct Found {
    /// `sha256:` of its bytes.
    pub(super) digest: String,
    /// What its server says that it is.
    pub(super) content_type: Option<String>,
    /// It.
    pub(super) bytes: Vec<u8>,
}

impl Registry {
    /// The name at this host, and whoever has logged in there.
    pub(super) fn new(
        host: &str,
        name: &str,
        shown: String,
        variables: Variables<'_>,
    ) -> Result<Registry, Cause> {
        let scheme = if is_this_machine(host) {
            "http"
        } else {
            "https"
        };
        let root = format!("{scheme}://{host}/");
        let root =
            Url::parse(&root).map_err(|error| never(format!("{host} is no host: {error}")))?;
        let base = format!("{root}v2/{name}");
        let session = Session::new(root, name, Logins::read(variables)?);
        Ok(Registry {
            base,
            shown,
            session: Arc::new(session),
            last: Mutex::default(),
        })
    }

    /// Ask for the manifest of a tag or a digest. It is what was asked for, where that was a digest.
    pub(super) fn manifest(
        &self,
        http: &Http,
        version: &str,
        accept: &str,
    ) -> Result<Found, Cause> {
        if let Some(found) = self.last(version) {
            return Ok(found);
        }
        let url = self.address(&format!("manifests/{version}"))?;
        let headers = [("Accept", accept.to_owned())];
        let access: &dyn Access = &*self.session;
        let mut answer = http.ask(&Ask {
            headers: &headers,
            ..Ask::get(&url, access)
        })?;
        let shown = &self.shown;
        match answer.status() {
            200 => {}
            401 | 403 if !answer.redirected => {
                return Err(never(format!(
                    "the registry does not let us have {shown}: there is no such name, or it is private; {}",
                    self.session.advice()
                )));
            }
            404 => return Err(never(format!("the registry has no {shown} ({version})"))),
            _ => return Err(answer.refusal()),
        }
        let said = answer.header("docker-content-digest").map(str::to_owned);
        let content_type = answer.header("content-type").map(str::to_owned);
        let bytes = answer.read(LONGEST)?;
        let digest = format!("sha256:{}", sha256(&bytes));
        if version.contains(':') && version != digest {
            return Err(never(format!(
                "the registry sent another manifest of {shown} than was asked for: it is {digest} and should be {version}; \
                 nothing was written"
            )));
        }
        if let Some(said) = said.filter(|said| said.starts_with("sha256:") && *said != digest) {
            return Err(never(format!(
                "the registry says that the manifest of {shown} is {said}, and it is {digest}; nothing was written"
            )));
        }
        let found = Found {
            digest,
            content_type,
            bytes,
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        Ok(found)
    }

    /// The last manifest that came, if it is of this digest.
    pub(super) fn last(&self, digest: &str) -> Option<Found> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone().filter(|found| found.digest == digest)
    }

    /// A blob to be fetched.
    pub(super) fn item(&self, blob: &Descriptor, path: Vec<String>) -> Result<Item, Cause> {
        let url = self.address(&format!("blobs/{}", blob.digest))?;
        let digest = Digest::parse(&blob.digest).ok_or_else(|| {
            never(format!(
                "{} of {} is no digest that can be checked",
                blob.digest, self.shown
            ))
        })?;
        let access = Arc::clone(&self.session);
        Ok(Item::blob(path, url, access, digest, blob.size))
    }

    fn address(&self, rest: &str) -> Result<Url, Cause> {
        let address = format!("{}/{rest}", self.base);
        Url::parse(&address).map_err(|error| never(format!("{address} is no address: {error}")))
    }
}

/// Whether this host is the machine itself. Nobody listens on the way to it, and registries there rarely have a certificate.
fn is_this_machine(host: &str) -> bool {
    let url = Url::parse(&format!("http://{host}/"));
    match url.as_ref().ok().and_then(Url::host) {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_without_encryption() {
        for host in [
            "localhost",
            "localhost:5000",
            "127.0.0.1:5000",
            "127.9.9.9",
            "[::1]:80",
            "x.localhost",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "registry.example",
            "localhost.example",
            "10.0.0.1:5000",
            "[::2]",
            "127.0.0.1.example",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
