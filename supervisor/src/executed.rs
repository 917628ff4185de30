//! What this program was executed as: itself, or a worker, spawner, minder or fetcher of the program that it is. Nothing is decided here but
//! that.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::error::{Error, Result};
use crate::process;
use crate::pull;
use crate::spawner;
use crate::worker::{self, MARK, Role};

/// Be a worker, a spawner, a minder or a fetcher, if that is what this program was executed for, and end with it; else return at once.
///
/// A program that uses [`Launcher::this_program`](worker::Launcher::this_program) calls this first thing in its `main`:
/// before it reads its arguments, and before it has a thread, as a process with threads cannot be forked safely. An
/// attribute such as `#[tokio::main]` makes threads before the function that it stands at begins; let a plain `main`
/// call this and then build the runtime.
///
/// Nothing that the program is given by others is taken for this: the variable `OUTLIVE_EXEC` and the first argument must
/// both say it, and agree. Commands of jobs never see the variable.
pub fn worker_if_asked() {
    worker::remember_that_it_asks();
    let Some(mark) = std::env::var_os(MARK) else {
        return;
    };
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some((role, rest)) = role(&mark, &arguments) else {
        return;
    };
    let code = match be(role, rest) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            i32::from(error.exit_code())
        }
    };
    std::process::exit(code)
}

/// What the variable and the first argument say together, and the arguments after it.
fn role<'a>(mark: &OsStr, arguments: &'a [OsString]) -> Option<(Role, &'a [OsString])> {
    let (first, rest) = arguments.split_first()?;
    let role = Role::ALL
        .into_iter()
        .find(|role| mark == role.word() && first == role.argument())?;
    Some((role, rest))
}

fn be(role: Role, arguments: &[OsString]) -> Result<()> {
    match (role, arguments) {
        (Role::Worker, [dir]) => worker::serve(Path::new(dir)),
        (Role::Spawner, [root, open_files, _room]) => spawner::serve(
            Path::new(root),
            open_files.to_str().and_then(|it| it.parse().ok()),
        ),
        (Role::Minder, []) => process::serve_on_stdin()
            .map_err(|error| Error::Worker(format!("commands cannot be run: {error}"))),
        (Role::Fetcher, [dir]) => pull::serve(Path::new(dir)),
        _ => Err(Error::Usage(format!(
            "a {} is not executed with these arguments",
            role.word()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_must_say_it_and_agree() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let worker = words(&["outlive-worker", "/dir"]);
        let told = role(OsStr::new("worker"), &worker);
        assert_eq!(told, Some((Role::Worker, &worker[1..])));
        assert_eq!(role(OsStr::new("spawner"), &worker), None);
        assert_eq!(role(OsStr::new(""), &worker), None);
        assert_eq!(
            role(OsStr::new("worker"), &words(&["worker", "/dir"])),
            None
        );
        assert_eq!(role(OsStr::new("worker"), &[]), None);
        let spawner = words(&["outlive-spawner", "/root", "1024"]);
        let told = role(OsStr::new("spawner"), &spawner);
        assert_eq!(told, Some((Role::Spawner, &spawner[1..])));
    }
}
