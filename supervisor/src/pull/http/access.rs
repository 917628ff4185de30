//! Who asks, and who may be told.

use state_machine::pull::word::Cause;
use url::Url;

use super::Http;

/// What is shown to the host that was asked, and to no other.
pub(in crate::pull) trait Access: Send + Sync {
    /// What stands in `Authorization`.
    fn header(&self) -> Option<String>;

    /// The host has refused us, with this challenge. Whether there is something else to show now.
    ///
    /// # Errors
    ///
    /// When getting that fails.
    fn renew(&self, http: &Http, url: &Url, challenge: Option<&str>) -> Result<bool, Cause> {
        let _ = (http, url, challenge);
        Ok(false)
    }
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
