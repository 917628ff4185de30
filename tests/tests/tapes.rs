//! Tapes: every protocol is on one and asks for the same again when it is replayed; what asks for something else is found.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use outlive::state_machine::call::Call;
use outlive::state_machine::disk::{Change, Dir, Disk, Mode, Name, Place};
use outlive::state_machine::id::{JobId, Ticket};
use outlive::state_machine::protocol::claim::{Claim, claim};
use outlive::state_machine::protocol::create::{Durable, Made, acknowledge, create};
use outlive::state_machine::protocol::look::look;
use outlive::state_machine::protocol::settle::let_go;
use outlive::state_machine::record::Descriptor;
use outlive::state_machine::tape::{Effect, Line, Reply};
use outlive_tests::{Bench, Played, bench, until};
use serde_json::json;

/// What is made of protocols, each of which says its own name, or only lists names.
const COMPOSED: [&str; 7] = [
    "find",
    "hold",
    "look_at_slots",
    "maintain_slot",
    "numbers",
    "shed",
    "sweep",
];

/// Every protocol that there is: each public function over a disk in the pure crate begins by saying its name.
fn protocols() -> BTreeSet<String> {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("../state-machine/src/protocol");
    let files = |room: &Path| {
        let entries = fs::read_dir(room).unwrap();
        entries.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    let mut names = BTreeSet::new();
    let paths = [files(&room), files(&room.join("slot"))].concat();
    for path in paths.into_iter().filter(|path| path.is_file()) {
        let source = fs::read_to_string(&path).unwrap();
        for function in source.split("\npub fn ").skip(1) {
            let Some((name, rest)) = function.split_once("<D: Disk>(") else {
                continue;
            };
            let (_, body) = rest.split_once(" {\n").unwrap();
            // One that is over no disk is none, and this is the next function.
            let is_name = name
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
            if !is_name || COMPOSED.contains(&name) {
                continue;
            }
            // `create` is `create_while` with nothing to do meanwhile.
            if body.contains(&format!(" {name}_while(")) {
                continue;
            }
            let name = name.strip_suffix("_while").unwrap_or(name);
            let word: String = name.split('_').map(capital).collect();
            let begins = body.split("Call::").next().unwrap_or_default().trim();
            assert!(
                begins.starts_with("disk.begins(") && body.contains(&format!("Call::{word}")),
                "{}: {name} does not say first that it begins",
                path.display()
            );
            names.insert(name.to_owned());
        }
    }
    names
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

#[test]
fn every_protocol_is_recorded_and_asks_for_the_same_again() {
    let bench = bench!();
    let wait = ["run", "--wait", "--"];
    bench.run([&wait[..], &["true"]].concat()).expect(0);
    bench
        .run(["run", "--wait", "--name", "web", "--", "true"])
        .expect(0);
    bench
        .run(["run", "--wait", "--task", "build", "--", "true"])
        .expect(0);
    // To a worker.
    let job = bench.sh("exec sleep 600");
    bench.run(["pause", job.id()]).expect(0);
    bench.run(["resume", job.id()]).expect(0);
    job.stop(0);
    // To nobody: a word that is no request, a file that stays empty, a request.
    let job = bench.queue(&["true"]);
    fs::write(job.file("control"), "dance\n").unwrap();
    bench.run(["status", job.id()]).expect(0);
    until("the word is taken away", || !job.file("control").exists());
    fs::write(job.file("control"), "").unwrap();
    bench.run(["pause", job.id()]).expect(0);
    assert_eq!(job.recorded(), "paused");
    job.stop(0);
    queue_in_every_way(&bench);
    use_slots_in_every_way(&bench);
    bench.run(["clean", "--all", "--keep", "0"]).expect(0);
    assert!(bench.jobs().is_empty());
    bench.audit();
    let played = bench.replay();
    let seen: BTreeSet<String> = played.calls.keys().map(|&name| name.to_owned()).collect();
    assert_eq!(seen, protocols(), "{played}");
}

/// What only queues, pools and supervisors do.
fn queue_in_every_way(bench: &Bench) {
    bench.run(["pool", "add", "p", "--slots", "1"]).expect(0);
    let supervise = ["supervise", "--idle-exit", "1ms"];
    let queue = ["queue", "--no-supervisor", "--pool", "p"];
    let fails = [&queue[..], &["--name", "fails", "--", "false"]].concat();
    let id = bench.run(fails).expect(0).text();
    let unmet = [&queue[..], &["--after", &id, "--", "true"]].concat();
    bench.run(unmet).expect(0);
    bench.run(supervise).expect(0);
    bench.run(["pool", "remove", "p"]).expect(0);
    // A batch, and one that is taken back for the last of it.
    let lost = bench.start(["--name", "lost", "--", "sleep", "600"]);
    lost.kill_worker();
    let lines = [
        json!({"argv": ["true"]}),
        json!({"argv": ["true"], "name": "lost"}),
    ];
    bench.queued_from(&["--no-supervisor"], &lines[..1]);
    let file = bench.file("batch");
    fs::write(&file, format!("{}\n{}\n", lines[0], lines[1])).unwrap();
    bench
        .run(["queue", "--from", file.to_str().unwrap()])
        .expect(6);
    bench.run(supervise).expect(0);
    lost.stop(0);
}

/// What only slots with a place do.
fn use_slots_in_every_way(bench: &Bench) {
    let add = ["pool", "add", "s", "--slots", "2", "--prepare", "true"];
    bench
        .run([&add[..], &["--maintain", "true"]].concat())
        .expect(0);
    let open = || {
        let opened = bench.run(["pool", "open", "s", "--json"]).expect(0).json();
        let word = |name: &str| opened[name].as_str().unwrap().to_owned();
        (word("token"), word("path"))
    };
    let (token, path) = open();
    bench.run(["pool", "exec", &token, "--", "true"]).expect(0);
    bench.run(["pool", "renew", &token, "--never"]).expect(0);
    bench.run(["pool", "status"]).expect(0);
    // Left as it is, while somebody stands in it.
    let mut stands = bench.program("sleep");
    stands.arg("600").current_dir(&path);
    let stands = bench.background(stands);
    bench.run(["pool", "close", &token]).expect(6);
    stands.kill();
    bench.run(["pool", "close", &token]).expect(0);
    bench.run(["pool", "maintain", "s"]).expect(0);
    bench
        .run(["run", "--pool", "s", "--wait", "--", "true"])
        .expect(0);
    fs::remove_dir_all(&path).unwrap();
    let (other, other_path) = open();
    bench.run(["pool", "repair", "s/1", "--force"]).expect(0);
    fs::remove_dir_all(Path::new(&other_path).parent().unwrap()).unwrap();
    bench.run(["pool", "close", &other, "--force"]).expect(0);
    bench.run(["pool", "remove", "s"]).expect(0);
}

/// A tape of this thread, from which nothing is passed over when it is replayed.
fn tape(bench: &Bench) -> Vec<Line> {
    let mut disk = outlive::disk::FsDisk::new(bench.store().root().to_owned());
    let mut descriptor = Descriptor::decode(
        br#"{"id":"0-none","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},
            "display_name":"true","pool":"default","created_at_ms":7}"#,
    )
    .unwrap();
    let ticket = Ticket::parse("t").unwrap();
    let made = create(&mut disk, &mut descriptor, None, &ticket, Durable::Yes).unwrap();
    let Made::Job(made) = made else {
        panic!("nobody else makes jobs here");
    };
    let holder = acknowledge(&mut disk, made).unwrap();
    let id = holder.id().clone();
    let_go(&mut disk, holder, 7, 7).unwrap();
    let Claim::Mine(lock) = claim(&mut disk, &id).unwrap() else {
        panic!("nobody holds it");
    };
    // Held, so that the look has to ask for the lock in vain.
    look(&mut disk, &id).unwrap();
    disk.close(lock).unwrap();
    let tapes = fs::read_dir(bench.dir().join("tape")).unwrap();
    let tapes: Vec<_> = tapes
        .map(|tape| fs::read(tape.unwrap().path()).unwrap())
        .collect();
    let [bytes] = tapes.as_slice() else {
        panic!("one thread has {} tapes", tapes.len());
    };
    let lines = bytes.trim_ascii_end().split(|&byte| byte == b'\n');
    let mut lines: Vec<Line> = lines.map(|line| Line::decode(line).unwrap()).collect();
    // The last line is the close that no protocol asked for.
    assert!(matches!(
        lines.pop(),
        Some(Line::Effect(Effect::Close(_), _))
    ));
    assert!(is_faithful(&lines), "{lines:#?}");
    lines
}

/// Whether every line is replayed and agrees.
fn is_faithful(lines: &[Line]) -> bool {
    let tape: Vec<u8> = lines.iter().flat_map(Line::encode).collect();
    let mut played = Played::default();
    played.bytes(&tape).is_ok() && played.outside == 0
}

/// What a line asks for, without what came of it.
fn asked(line: &Line) -> (Option<&Call>, Option<&Effect>) {
    match line {
        Line::Call(call) => (Some(call), None),
        Line::Effect(effect, _) => (None, Some(effect)),
    }
}

#[test]
fn a_tape_that_was_tampered_with_is_refused() {
    let bench = bench!();
    let lines = tape(&bench);
    assert!(lines.len() > 20, "{}", lines.len());
    for at in 0..lines.len() {
        let mut cut = lines.clone();
        cut.truncate(at);
        assert!(is_faithful(&cut), "a killed process asked for no more");
        let mut lacking = lines.clone();
        let missing = lacking.remove(at);
        let is_last = at == lacking.len();
        assert!(is_last || !is_faithful(&lacking), "{missing:?}");
        let mut more = lines.clone();
        more.insert(at, Line::Effect(Effect::GiveWay(7), Reply::Done));
        assert!(!is_faithful(&more), "one more at {at}");
    }
    for at in 1..lines.len() {
        let mut swapped = lines.clone();
        swapped.swap(at - 1, at);
        let same = asked(&lines[at - 1]) == asked(&lines[at]);
        assert!(same || !is_faithful(&swapped), "{:?}", &lines[at - 1..=at]);
    }
    for at in 0..lines.len() {
        for changed in changes(&lines[at]) {
            let mut tampered = lines.clone();
            tampered[at] = changed.clone();
            assert!(!is_faithful(&tampered), "{:?} as {changed:?}", lines[at]);
        }
    }
    bench.audit();
}

/// A line with another argument, or with another reply where that makes a difference.
fn changes(line: &Line) -> Vec<Line> {
    let mut changes = Vec::new();
    let text = String::from_utf8(line.encode()).unwrap();
    for (from, to) in [
        ("\"7-true\"", "\"8-true\""),
        ("\"staged\":\"t-0\"", "\"staged\":\"t-1\""),
        ("\"exclusive\"", "\"shared\""),
        ("{\"opened\":", "{\"opened\":1"),
        ("{\"created\":", "{\"created\":1"),
        ("{\"close\":", "{\"close\":1"),
        ("{\"lock\":[", "{\"lock\":[1"),
    ] {
        // The last one: what comes before it may be the name of a kind.
        if let Some(at) = text.rfind(from) {
            let changed = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
            changes.extend(Line::decode(changed.as_bytes()));
        }
    }
    // Whether the last spare is missing or in the way comes to the same.
    let is_spare = matches!(
        line,
        Line::Effect(Effect::RenameNew(Place::Dir(Dir::Spare(_)), _), _)
    );
    if let Line::Effect(effect @ (Effect::RenameNew(..) | Effect::Mkdir(_)), _) = line
        && !is_spare
    {
        changes.push(Line::Effect(effect.clone(), Reply::Changed(Change::Exists)));
    }
    if let Line::Effect(
        effect @ (Effect::Lock(_, Mode::Exclusive) | Effect::Stands(..)),
        Reply::Is(is),
    ) = line
    {
        changes.push(Line::Effect(effect.clone(), Reply::Is(!is)));
    }
    if let Line::Effect(effect, _) = line {
        changes.push(Line::Effect(effect.clone(), Reply::Listed(None)));
    }
    changes
}

#[test]
fn what_is_no_tape_is_refused_and_a_torn_end_is_none() {
    let bench = bench!();
    let id = JobId::parse("7-a").unwrap();
    let lock = Place::of_job(&id, Name::Lock);
    let whole = [
        Line::Call(Call::Probe {
            place: lock.clone(),
        })
        .encode(),
        Line::Effect(Effect::Open(lock, Mode::Shared), Reply::Fault(24)).encode(),
        Line::Effect(Effect::List(Dir::Jobs), Reply::Listed(None)).encode(),
    ]
    .concat();
    let file = bench.file("one.jsonl");
    let replay = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let mut played = Played::default();
        played
            .file(&file)
            .map(|()| (played.effects, played.outside))
    };
    // The fault is the end of the protocol, and the list its caller's.
    assert_eq!(replay(&whole), Ok((1, 1)));
    assert_eq!(replay(&whole[..whole.len() - 1]), Ok((1, 0)));
    assert_eq!(replay(b""), Ok((0, 0)));
    let refused = replay(&[&whole[..], b"rubbish\n", &whole].concat()).unwrap_err();
    assert_eq!((refused.tape.as_path(), refused.line), (&*file, 4));
    bench.audit();
}

/// A supervisor that retires looks for work once more when nobody can claim to be served by it: whoever queues must have let the
/// job go before it asks whether there is a supervisor, or both could leave it to the other (R18). In the model that order is
/// the queuer's; here it is that of every verb that queues.
#[test]
fn who_queues_asks_for_a_supervisor_when_the_jobs_are_let_go() {
    let bench = bench!();
    bench.run(["pool", "pause", "default"]).expect(0);
    let file = bench.file("batch");
    fs::write(&file, "{\"argv\": [\"true\"]}\n{\"argv\": [\"true\"]}\n").unwrap();
    let from = ["queue", "--no-supervisor", "--from", file.to_str().unwrap()];
    let seen = tapes(&bench);
    bench
        .run(["queue", "--no-supervisor", "--", "true"])
        .expect(0);
    bench.run(from).expect(0);
    bench.run(["queue", "--", "true"]).expect(0);
    let queued: Vec<Vec<Call>> = tapes(&bench)
        .difference(&seen)
        .map(|tape| calls(tape))
        .filter(|calls| {
            calls
                .iter()
                .any(|call| matches!(call, Call::Create { .. } | Call::CreateBatch { .. }))
        })
        .collect();
    assert_eq!(queued.len(), 3, "{queued:?}");
    for calls in queued {
        let last = |wanted: fn(&Call) -> bool| calls.iter().rposition(wanted);
        let let_go = last(|call| matches!(call, Call::LetGo { .. }));
        let asked = last(|call| matches!(call, Call::IsSupervised));
        assert!(let_go.is_some() && let_go < asked, "{calls:?}");
    }
    bench.run(["supervisor", "stop"]).expect(0);
    bench.run(["stop", "--all"]).expect(0);
    bench.audit();
}

/// The tapes that there are.
fn tapes(bench: &Bench) -> BTreeSet<PathBuf> {
    let tapes = fs::read_dir(bench.dir().join("tape")).unwrap();
    tapes.map(|tape| tape.unwrap().path()).collect()
}

/// The protocols that began on a tape, in order.
fn calls(tape: &Path) -> Vec<Call> {
    let bytes = fs::read(tape).unwrap();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let calls = lines.filter_map(|line| match Line::decode(line).unwrap() {
        Line::Call(call) => Some(call),
        Line::Effect(..) => None,
    });
    calls.collect()
}
