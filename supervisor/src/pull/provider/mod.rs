//! What references stand for. One file for each kind of them, and the list below: a new kind is a file and a line.

mod web;

use std::path::Path;

use state_machine::pull::reference::Reference;
use state_machine::pull::word::Cause;
use state_machine::record::Pull;

use super::http::Http;
use super::plan::Plan;

/// Who knows what a kind of reference stands for.
pub(super) trait Provider {
    /// What is asked for now: a commit, a digest. It is remembered, so that a branch or tag that moves does not change a transfer
    /// that is under way. Nothing where a reference stands for one thing only.
    ///
    /// # Errors
    ///
    /// When that cannot be found out.
    fn resolve(&self, http: &Http) -> Result<Option<String>, Cause> {
        let _ = http;
        Ok(None)
    }

    /// What is to be fetched.
    ///
    /// # Errors
    ///
    /// When that cannot be found out, or may not be written where it would belong.
    fn plan(&self, http: &Http, resolved: Option<&str>, destination: &Path) -> Result<Plan, Cause>;
}

/// Who knows what this stands for.
pub(super) fn of(reference: Reference, pull: &Pull) -> Result<Box<dyn Provider>, Cause> {
    match reference {
        Reference::Web(address) => Ok(Box::new(web::Web::new(&address, pull)?)),
        Reference::Hub(_) | Reference::Image(_) | Reference::Model(_) => {
            Err(super::http::never("such references cannot be pulled yet"))
        }
    }
}
