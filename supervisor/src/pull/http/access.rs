//! Who asks, and who may be told.

use super::Http;
use state_machine::pull::word::Cause;

/// What is shown to the host that was asked, and to no other.
pub(in crate::pull) trait Access: Send + Sync {
    /// What stands in `Authorization`.
    fn header(&self) -> Option<String>;

    /// The host has refused us. Whether there is something else to show now.
    ///
    /// # Errors
    ///
    /// When getting that fails.
    fn renew(&self, http: &Http, refused: &Refused<'_>) -> Result<bool, Cause> {
        let _ = (http, refused);
        Ok(false)
    }
}

/// How the host has refused us.
pub(in crate::pull) struct Refused<'a> {
    /// What it was shown. Several ask at a time, and another may have something newer by now.
    pub(in crate::pull) shown: Option<&'a str>,
    /// What it wants to be shown: everything in `WWW-Authenticate`.
    pub(in crate::pull) challenge: &'a str,
}

/// Nobody is told anything.
pub(in crate::pull) struct Public;

impl Access for Public {
    fn header(&self) -> Option<String> {
        None
    }
}

/// A token that does not change.
pub(in crate::pull) struct Bearer(pub(in crate::pull) String);

impl Access for Bearer {
    fn header(&self) -> Option<String> {
        Some(format!("Bearer {}", self.0))
    }
}
