//! What references stand for. One file or folder for each kind of them, and the list below: a new kind is a file and a line.
//!
//! A provider asks what there is and plans; it fetches no file and writes none.
//!
//! | room | what it is for |
//! |---|---|
//! | `web` | one file at an address |
//! | `hub` | the files of a repository at one commit |
//! | `image` | an image of a registry, as a layout of an image |
//! | `model` | a model of a registry, in the directory that ollama reads |
//! | `registry` | what the last two share: manifests, and who asks |

mod hub;
mod image;
mod model;
mod registry;
mod web;

use std::ffi::OsString;
use std::path::Path;

use state_machine::pull::reference::Reference;
use state_machine::pull::word::Cause;
use state_machine::record::Pull;

use super::http::{Http, never};
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
    if !matches!(reference, Reference::Hub(_)) {
        only_for_hubs(pull)?;
    }
    Ok(match reference {
        Reference::Web(address) => Box::new(web::Web::new(&address, pull)?),
        Reference::Hub(hub) => Box::new(hub::Repository::new(hub, pull, &variable)?),
        Reference::Image(image) => Box::new(image::Image::new(image, pull, &variable)?),
        Reference::Model(model) => Box::new(model::Model::new(model, pull, &variable)?),
    })
}

/// What is asked for besides, and cannot be given, is an error and not passed over.
fn only_for_hubs(pull: &Pull) -> Result<(), Cause> {
    if pull.revision.is_some() {
        return Err(never("only repositories of a hub have revisions"));
    }
    if !pull.include.is_empty() || !pull.exclude.is_empty() {
        return Err(never(
            "only the files of a hub's repository can be chosen by patterns",
        ));
    }
    Ok(())
}

/// What is set in an environment, by the name of the variable; what is empty is not set.
type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// What is set in ours: what its submitter had set.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
