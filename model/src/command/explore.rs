//! Showing a configuration in a browser.

use std::process::ExitCode;

use outlive_model::{config, guard};
use stateright::Model;

use super::{Asked, must_unwind, unknown};
use crate::misused;

pub(crate) fn explore(asked: &Asked) -> ExitCode {
    let Some(name) = &asked.config else {
        return misused("explore needs --config NAME");
    };
    let Some(world) = config::named(name) else {
        return misused(&unknown(name));
    };
    if world.panics && !guard::UNWINDS {
        return must_unwind(name, &format!("explore --config {name}"));
    }
    say!("{name} is at http://{}", asked.address);
    world.checker().serve(asked.address.as_str());
    ExitCode::SUCCESS
}
