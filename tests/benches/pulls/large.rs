//! One large file, from nginx and from the tests' own server.

use std::fs;
use std::process::Command;

use outlive_tests::{Nginx, Served, Server, program_at};

use super::{Tool, compare as compare_tools, memory, outlive, places};

/// How long the file is, in millions of bytes.
const MEGABYTES: usize = 1_000;

pub(super) fn compare() {
    let megabytes = std::env::var("OUTLIVE_TEST_MEGABYTES").ok();
    let megabytes = megabytes.map_or(MEGABYTES, |text| text.parse().expect("it is a number"));
    let file = Served::of_length(megabytes * 1_000_000, 1);
    let nginx = Nginx::new("");
    if let Some(nginx) = &nginx {
        nginx.put("file.bin", &file.bytes);
    }
    let length = file.bytes.len() as u64;
    let server = Server::new(move |request, reply| file.serve(request, reply));
    let ours = Some(server.url("/file.bin"));
    let servers = [
        ("nginx", nginx.as_ref().map(|it| it.url("/file.bin"))),
        ("the tests' server", ours),
    ];
    for (name, url) in servers {
        let Some(url) = url else { continue };
        for (place, within) in places() {
            let scratch = tempfile::tempdir_in(within).expect("a scratch directory can be made");
            let what = format!("{megabytes} MB from {name}, {place}");
            compare_tools(&what, scratch.path(), &tools(&url), |dir| {
                fs::metadata(dir.join("file.bin")).is_ok_and(|found| found.len() == length)
            });
        }
        let scratch = tempfile::tempdir().expect("a scratch directory can be made");
        println!("  memory: {}", memory::of(scratch.path(), &url));
    }
}

fn tools(url: &str) -> Vec<Tool<'_>> {
    // Whatever else syncs nothing; what a loss of power leaves is another comparison.
    let script = "curl -sO \"$0\" && sync file.bin";
    vec![
        Tool::new("outlive pull --wait", move |dir| Some(outlive(dir, url))),
        Tool::new("curl -O", move |_| of("curl", &["-sO", url])),
        Tool::new("aria2c -x4", move |_| of("aria2c", &["-q", "-x4", url])),
        Tool::new("curl -O, sync", move |_| {
            program_at("curl")?;
            of("sh", &["-c", script, url])
        }),
    ]
}

/// A command, where the program is installed.
fn of(program: &str, arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new(program_at(program)?);
    command.args(arguments);
    Some(command)
}
