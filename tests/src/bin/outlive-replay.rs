//! Replay tapes by hand: files, or directories of them. Prints how much was replayed, or the line that differs.

use std::path::Path;
use std::process::ExitCode;

use outlive_tests::Played;

fn main() -> ExitCode {
    for argument in std::env::args_os().skip(1) {
        let path = Path::new(&argument);
        let played = if path.is_dir() {
            Played::directory(path)
        } else {
            let mut played = Played::default();
            played.file(path).map(|()| played)
        };
        match played {
            Ok(played) => println!("{}: {played}", path.display()),
            Err(refused) => {
                eprintln!("{refused}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
