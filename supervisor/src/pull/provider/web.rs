//! One file at an address of the web.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use state_machine::pull::path::staging_beside;
use state_machine::pull::reference::shown;
use state_machine::pull::word::Cause;
use state_machine::record::Pull;
use url::Url;

use super::Provider;
use crate::pull::digest::{Digest, sha256};
use crate::pull::http::{Access, Http, Public, never};
use crate::pull::plan::{Item, Plan};

/// A file at an address.
pub(super) struct Web {
    url: Url,
    access: Arc<dyn Access>,
    digest: Option<Digest>,
}

impl Web {
    /// What is asked for.
    pub(super) fn new(address: &str, pull: &Pull) -> Result<Web, Cause> {
        let mut url = Url::parse(address)
            .map_err(|error| never(format!("{} is no address: {error}", shown(address))))?;
        let access: Arc<dyn Access> = match user_in(&url) {
            Some(access) => Arc::new(access),
            None => Arc::new(Public),
        };
        // Fails only for addresses that have no host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let digest = match &pull.digest {
            Some(text) => Some(Digest::parse(text).ok_or_else(|| {
                never(format!(
                    "{text} is no digest that can be checked; use sha256:…"
                ))
            })?),
            None => None,
        };
        Ok(Web {
            url,
            access,
            digest,
        })
    }
}

/// The user and the password that stand in an address.
fn user_in(url: &Url) -> Option<Basic> {
    let password = url.password().unwrap_or_default();
    let is_there = !url.username().is_empty() || !password.is_empty();
    let both = format!("{}:{password}", url.username());
    is_there.then(|| Basic(STANDARD.encode(both)))
}

struct Basic(String);

impl Access for Basic {
    fn header(&self) -> Option<String> {
        Some(format!("Basic {}", self.0))
    }
}

impl Provider for Web {
    fn plan(&self, _: &Http, _: Option<&str>, destination: &Path) -> Result<Plan, Cause> {
        let name = destination.file_name().and_then(|it| it.to_str());
        let (Some(name), Some(root)) = (name, destination.parent()) else {
            return Err(never(format!(
                "{} is no name for a file",
                destination.display()
            )));
        };
        let staging = root.join(staging_beside(name, &sha256(name.as_bytes())));
        let item = Item::at(vec![name.to_owned()], self.url.clone(), self.access.clone());
        Ok(Plan {
            items: vec![item.known(self.digest.clone(), None)],
            written: Vec::new(),
            root: root.to_owned(),
            staging,
            owns_staging: true,
            keystone: None,
            note: None,
        })
    }
}
