//! Showing a configuration in a browser.

use std::process::ExitCode;

use outlive_model::config;
use stateright::Model;

use super::{Asked, unknown};
use crate::misused;

pub(crate) fn explore(asked: &Asked) -> ExitCode {
    let Some(name) = &asked.config else {
        return misused("explore needs --config NAME");
    };
    let Some(world) = config::named(name) else {
        return misused(&unknown(name));
    };
    say!("{name} is at http://{}", asked.address);
    world.checker().serve(asked.address.as_str());
    ExitCode::SUCCESS
}
