//! Many clients, maintainers and deaths at once: no slot ever has two holders, and at the end all are idle without anyone's help.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outlive_tests::{DEADLINE, Dice, bench, rounds, until};

use crate::site::{Site, session};

/// How many clients, and how many slots for them.
const CLIENTS: u64 = 20;
const SLOTS: u32 = 4;

/// What is done in a slot: a marker that nobody else may have there, under the lock of a command of the session.
const WORK: &str = "set -C; echo $$ > cache || exit 99; sleep 0.0$(($$ % 9)); rm cache";

#[test]
fn many_clients_maintainers_and_deaths_share_a_few_slots() {
    // The marker is ignored by git, and removed again by whoever has made it; a slot that is handed on has none.
    let maintain = "set -C; echo m > cache || exit 99; rm cache";
    let options = ["--maintain", maintain, "--reset", "rm -f cache"];
    let site = Site::new(bench!(), SLOTS, &options);
    site.bench.crashes();
    let (dice, over) = (Dice::new(), AtomicBool::new(false));
    let (worked, killed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (waits, last) = (Mutex::new(Vec::new()), Mutex::new(Instant::now()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let ran = site.pool(&["maintain", "web", "--json"]);
                    let text = ran.text();
                    assert!(!text.contains("\"exit\":99"), "two holders: {text}");
                }
            });
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let (site, worked, killed) = (&site, &worked, &killed);
                let (waits, last) = (&waits, &last);
                let mut dice = dice.nth(nth);
                scope.spawn(move || {
                    for round in 0..rounds(3) {
                        let note = format!("client {nth} round {round};");
                        // Nobody waits: who finds no slot comes again. That is not fair, but somebody always gets one.
                        while !client(site, &mut dice, &note, worked, killed, waits) {
                            let last = *last.lock().expect("no client fails");
                            assert!(last.elapsed() < 3 * DEADLINE, "nobody gets a slot any more");
                            dice.moment(20_000);
                        }
                        *last.lock().expect("no client fails") = Instant::now();
                    }
                })
            })
            .collect();
        for client in clients {
            client.join().expect("a client finds nothing wrong");
        }
        over.store(true, Ordering::Relaxed);
    });
    println!(
        "worked {} times, killed {} times",
        worked.load(Ordering::Relaxed),
        killed.load(Ordering::Relaxed)
    );
    // What an open took beside git's work for its own slot: for people to see, as a machine may be as slow as it likes.
    let mut waits = waits.into_inner().expect("no client fails");
    waits.sort();
    println!(
        "{} opens, beside their own git work: {:?} in the middle, {:?} at most",
        waits.len(),
        waits.get(waits.len() / 2),
        waits.last()
    );
    close_all(&site, "");
    until("nothing runs any more", || site.bench.census().is_empty());
    // What was left by the dead is seen to by whoever comes next.
    let sessions: Vec<_> = (0..SLOTS).map(|_| site.open()).collect();
    for session in &sessions {
        site.close(session).expect(0);
    }
    for number in 1..=u64::from(SLOTS) {
        assert_eq!(site.state(number), "idle");
    }
    site.bench.audit();
}

/// Whether a slot was had, or the client died on the way.
fn client(
    site: &Site,
    dice: &mut Dice,
    note: &str,
    worked: &AtomicUsize,
    killed: &AtomicUsize,
    waits: &Mutex<Vec<Duration>>,
) -> bool {
    let begun = Instant::now();
    let open = site.verb(&["open", "web", "--json", "--note", note]);
    let mut opener = site.bench.background(open);
    if dice.chance(20) {
        dice.moment(30_000);
        let _ = opener.child.kill();
    }
    let opened = opener.end();
    match opened.code() {
        0 => {}
        137 => {
            killed.fetch_add(1, Ordering::Relaxed);
            // It may have opened a session before it could say so, which is nobody's process.
            close_all(site, note);
            return true;
        }
        // None is idle, or others have looked for one all the time.
        7 | 6 => return false,
        _ => panic!("{opened:?}"),
    }
    let report = opened.json();
    let one = session(&report);
    let work = Duration::from_millis(report["work_ms"].as_u64().expect("it says so"));
    let mut all = waits.lock().expect("no client fails");
    all.push(begun.elapsed().saturating_sub(work));
    drop(all);
    let mut work = site.bench.background(site.exec(&one, &["sh", "-c", WORK]));
    if dice.chance(20) {
        dice.moment(50_000);
        let _ = work.child.kill();
        killed.fetch_add(1, Ordering::Relaxed);
    }
    let ran = work.end();
    assert_ne!(
        ran.code(),
        99,
        "two holders of {}: {ran:?}",
        one.path.display()
    );
    worked.fetch_add(1, Ordering::Relaxed);
    let mut closer = site
        .bench
        .background(site.verb(&["close", &one.token, "--force"]));
    if dice.chance(20) {
        dice.moment(50_000);
        let _ = closer.child.kill();
    }
    let closed = closer.end();
    if closed.code() == 137 {
        let again = site.force(&one);
        assert!(matches!(again.code(), 0 | 3), "{again:?}");
    } else {
        closed.expect(0);
    }
    true
}

/// Close what those who were killed have left open, and have noted this: a session is nobody's process.
fn close_all(site: &Site, note: &str) {
    let dir = site.bench.root().join("sessions");
    for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_noted = fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(note));
        if let Some(token) = name.strip_suffix(".json")
            && is_noted
        {
            let ran = site.pool(&["close", token, "--force"]);
            assert!(matches!(ran.code(), 0 | 3), "{ran:?}");
        }
    }
}
