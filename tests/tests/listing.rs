//! What a listing remembers of ended jobs: it is used, it is never believed of a record that has changed, and whatever becomes of
//! the file, the listing is the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use outlive_tests::{Bench, bench, until};
use serde_json::{Value, json};

/// So many that they are worth remembering.
const JOBS: usize = 300;

fn remembered(bench: &Bench) -> PathBuf {
    bench.root().join("listing")
}

/// A store of ended jobs that a listing remembers.
fn of_ended_jobs(bench: &Bench) -> Vec<Value> {
    let lines: Vec<_> = (0..JOBS).map(|_| json!({"argv": ["true"]})).collect();
    bench.queued_from(&["--no-supervisor"], &lines);
    bench.stop_all();
    // Not before the records have been what they are for a while.
    until("all of them are remembered", || {
        let _ = fs::remove_file(remembered(bench));
        bench.list();
        fs::read_to_string(remembered(bench)).is_ok_and(|text| text.lines().count() == JOBS + 1)
    });
    bench.list()
}

fn text_of(bench: &Bench) -> String {
    fs::read_to_string(remembered(bench)).expect("it is there")
}

fn command(job: &Value) -> &str {
    job["command"][0].as_str().expect("it is a command")
}

#[test]
fn what_is_remembered_is_used_as_long_as_no_record_has_changed() {
    let bench = bench!();
    let listed = of_ended_jobs(&bench);
    assert_eq!(listed.len(), JOBS);
    // A lie, to see what comes from where.
    let lying = text_of(&bench).replace(r#"["true"]"#, r#"["told"]"#);
    fs::write(remembered(&bench), lying).unwrap();
    assert!(bench.list().iter().all(|job| command(job) == "told"));

    let jobs = bench.jobs();
    let changes = [
        ("status.json", "cancelled", "failed"),
        ("status.json", "\"steps\":2", "\"steps\":3"),
        ("job.json", "[\"true\"]", "[\"eurt\"]"),
        ("job.json", "[\"true\"]", "[\"false\"]"),
    ];
    for (nth, (file, from, to)) in changes.into_iter().enumerate() {
        let path = jobs[nth].file(file);
        let was = fs::read_to_string(&path).unwrap();
        assert!(was.contains(from), "{was}");
        let changed = was.replace(from, to);
        // As every writer does it; and as if it had not been written.
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let new = jobs[nth].file("new");
        fs::copy(&path, &new).unwrap();
        fs::write(&new, changed).unwrap();
        let copy = fs::File::options().append(true).open(&new).unwrap();
        copy.set_modified(modified).unwrap();
        fs::rename(&new, &path).unwrap();
        let listed = bench.list();
        let is_it = |job: &&Value| job["id"] == jobs[nth].id();
        let job = listed.iter().find(is_it).expect("it is listed");
        assert_ne!(command(job), "told", "{file}");
        let shown = [command(job), job["state"].as_str().expect("it has one")];
        assert!(file == "status.json" || to.contains(shown[0]), "{shown:?}");
        assert!(nth != 0 || shown[1] == to, "{shown:?}");
        fs::write(&path, was).unwrap();
        let listed = bench.list();
        let told = listed.iter().filter(|job| command(job) == "told");
        assert_eq!(told.count(), JOBS - nth - 1);
    }
    bench.audit();
}

#[test]
fn whatever_stands_where_it_is_remembered_the_listing_is_the_same() {
    let bench = bench!();
    let listed = of_ended_jobs(&bench);
    let good = text_of(&bench);
    let (first, rest) = good.split_once('\n').expect("it has lines");
    let backwards: Vec<&str> = rest.lines().rev().collect();
    let nonsense = [
        String::new(),
        "\0".repeat(good.len()),
        good[..good.len() / 2].to_owned(),
        good[..good.len() - 1].to_owned(),
        format!("{first}\n\n\t\t\t\n{rest}\t\t\n{rest}"),
        format!("{first}\n{}\n", backwards.join("\n")),
        // Of another boot: whatever it says.
        format!(
            "{}0\n{}",
            &first[..first.len() - 1],
            rest.replace("true", "told")
        ),
        // Of other files.
        format!(
            "{first}\n{}",
            rest.replace('.', ".1").replace("true", "told")
        ),
        format!(
            "{first}\n{}",
            rest.replace("{\"", "{{").replace("true", "told")
        ),
    ];
    for text in nonsense {
        fs::write(remembered(&bench), text).unwrap();
        assert_eq!(bench.list(), listed);
    }
    let stands_there: [fn(&Bench); 3] = [
        |bench| fs::create_dir(remembered(bench)).unwrap(),
        |bench| symlink("/dev/zero", remembered(bench)).unwrap(),
        |_| {},
    ];
    for make in stands_there {
        let path = remembered(&bench);
        fs::remove_file(&path)
            .or_else(|_| fs::remove_dir(&path))
            .unwrap();
        make(&bench);
        assert_eq!(bench.list(), listed);
    }
    // Nothing is left of what was written beside it.
    assert_eq!(
        fs::read_dir(bench.root().join("staging")).unwrap().count(),
        0
    );
    bench.audit();
}

#[test]
fn nothing_is_remembered_of_what_was_forgotten() {
    let bench = bench!();
    let listed = of_ended_jobs(&bench);
    let gone = bench.jobs()[7].id().to_owned();
    assert!(text_of(&bench).contains(&gone));
    bench.run(["clean", &gone]).expect(0);
    assert!(!remembered(&bench).exists());
    let expected: Vec<Value> = listed.into_iter().filter(|job| job["id"] != gone).collect();
    assert_eq!(bench.list(), expected);
    assert!(!text_of(&bench).contains(&gone));

    // Behind its back.
    fs::remove_dir_all(bench.jobs()[7].dir()).unwrap();
    assert_eq!(bench.list().len(), JOBS - 2);
    bench.audit();
}

#[test]
fn many_who_list_at_once_see_the_same() {
    let bench = bench!();
    let listed = of_ended_jobs(&bench);
    for _ in 0..5 {
        fs::remove_file(remembered(&bench)).unwrap();
        let list = || bench.background(bench.verb(["list", "--all", "--json"]));
        let lists: Vec<_> = (0..6).map(|_| list()).collect();
        for list in lists {
            assert_eq!(list.end().expect(0).json(), Value::Array(listed.clone()));
        }
        assert!(remembered(&bench).exists());
    }
    bench.audit();
}
