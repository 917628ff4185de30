//! What a supervisor tells a service manager (sd_notify), and what it prints.

use std::os::unix::net::UnixDatagram;

use outlive_tests::{DEADLINE, bench, until};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn the_service_manager_is_told_of_every_stage() {
    let bench = bench!();
    let manager = bench.file("notify");
    let heard = UnixDatagram::bind(&manager).unwrap();
    heard.set_read_timeout(Some(DEADLINE)).unwrap();
    let next = || {
        let mut buffer = [0; 512];
        let length = heard.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let mut command = bench.verb(["supervise", "--foreground"]);
    command.env("NOTIFY_SOCKET", &manager);
    let supervised = bench.supervise_ready_by(command);
    assert_eq!(next().trim_end(), "READY=1");
    for _ in 0..3 {
        supervised.signal(Signal::HUP);
        let reloads = next();
        assert!(
            reloads.contains("RELOADING=1\nMONOTONIC_USEC="),
            "{reloads}"
        );
        assert_eq!(next().trim_end(), "READY=1");
    }
    supervised.signal(Signal::TERM);
    assert_eq!(next().trim_end(), "STOPPING=1");
    supervised.ended();
    bench.audit();
}

#[test]
fn its_log_is_json_where_that_is_wanted() {
    let bench = bench!();
    let arguments = ["supervise", "--log-format", "json", "--log-level", "debug"];
    let supervisor = bench.background(bench.verb(arguments));
    until("it answers", || {
        bench.run(["supervisor", "status"]).code() == 0
    });
    let id = bench.run(["queue", "--", "true"]).expect(0).text();
    bench.job(&id).until_ended();
    // A second one is refused, and says who is there.
    let second = bench.run(["supervise"]).expect(6);
    assert!(
        second.errors().contains(&supervisor.child.id().to_string()),
        "{second:?}"
    );
    std::fs::write(bench.root().join("config.toml"), "nonsense").unwrap();
    bench.run(["supervisor", "reload"]).expect(1);
    std::fs::remove_file(bench.root().join("config.toml")).unwrap();
    bench.run(["supervisor", "stop"]).expect(0);
    let ran = supervisor.end().expect(0);
    let told = String::from_utf8(ran.stderr).unwrap();
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let of_job = lines
        .iter()
        .find(|line| line["fields"]["job"] == id.as_str());
    assert!(of_job.is_some(), "{told}");
    let error = lines.iter().find(|line| line["level"] == "ERROR");
    let error = error.unwrap()["fields"]["error"].as_str().unwrap();
    assert!(error.contains("config.toml"), "{error}");
    bench.audit();
}
