//! Which manifest it must be: the one that somebody wants, and the one that was written down when the transfer began.

use state_machine::pull::reference::is_digest;
use state_machine::pull::word::Cause;
use state_machine::record::Pull;

use crate::pull::http::never;

/// The digest that a manifest must have, where somebody said one.
pub(in crate::pull::provider) struct Wanted(Option<String>);

impl Wanted {
    /// What this pull wants.
    pub(in crate::pull::provider) fn of(pull: &Pull) -> Result<Wanted, Cause> {
        match &pull.digest {
            Some(wanted) if !is_digest(wanted) => Err(never(format!(
                "{wanted} is no digest that can be checked; use sha256:…"
            ))),
            wanted => Ok(Wanted(wanted.clone())),
        }
    }

    /// The digest of what is there now under a name that people know as `shown`, where that is what is wanted.
    pub(in crate::pull::provider) fn accept(
        &self,
        digest: String,
        shown: &str,
    ) -> Result<String, Cause> {
        match &self.0 {
            Some(wanted) if *wanted != digest => {
                Err(never(format!("{shown} is {digest} and should be {wanted}")))
            }
            _ => Ok(digest),
        }
    }
}

/// The digest that was written down.
pub(in crate::pull::provider) fn written_down(resolved: Option<&str>) -> Result<&str, Cause> {
    resolved
        .filter(|digest| is_digest(digest))
        .ok_or_else(|| never("the digest that was written down is none"))
}
