use super::place::{Own, can_limit};
use super::*;

const HYBRID: &str = "\
24 1 0:22 / /sys rw,nosuid - sysfs sysfs rw
31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 24 0:28 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw
";

/// Of a control group, the files that tell where groups can be made.
fn group(dir: &Path, controllers: &str, enabled: &str, processes: &str) {
    fs::create_dir_all(dir).unwrap();
    for (file, text) in [
        ("cgroup.type", "domain\n"),
        ("cgroup.controllers", controllers),
        ("cgroup.subtree_control", enabled),
        ("cgroup.procs", processes),
    ] {
        fs::write(dir.join(file), text).unwrap();
    }
}

#[test]
fn the_own_group_is_found_where_version_2_is_mounted() {
    let found = |own: &str| Own::locate(HYBRID, own).map(|own| own.dir);
    let at = |path: &str| Some(PathBuf::from(path));
    assert_eq!(
        found("4:memory:/x\n0::/user.slice/a.scope\n"),
        at("/sys/fs/cgroup/unified/user.slice/a.scope")
    );
    assert_eq!(found("0::/\n"), at("/sys/fs/cgroup/unified/"));
    assert_eq!(found("0::/../outside\n"), None);
    assert_eq!(found("4:memory:/x\n"), None);
    let within = HYBRID.replace("0:28 / ", "0:28 /box ");
    let own = Own::locate(&within, "0::/box/in\n").map(|own| own.dir);
    assert_eq!(own, at("/sys/fs/cgroup/unified/in"));
    assert_eq!(Own::locate(&within, "0::/elsewhere\n"), None);
}

#[test]
fn a_group_that_has_processes_can_have_none_with_limits_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    group(dir, "cpu memory", "", "1\n");
    assert!(!can_limit(dir, &["cpu"]));
    group(dir, "cpu memory", "", "");
    assert!(can_limit(dir, &["cpu"]) && can_limit(dir, &["cpu", "memory"]));
    group(dir, "cpu", "", "");
    assert!(!can_limit(dir, &["cpu", "memory"]));
    group(dir, "cpu memory", "memory", "");
    assert!(can_limit(dir, &["memory"]));
    // Nobody may change it.
    group(dir, "cpu memory", "", "");
    fs::remove_file(dir.join("cgroup.subtree_control")).unwrap();
    assert!(!can_limit(dir, &["memory"]));
    // The root has processes, and no type.
    group(dir, "cpu memory", "", "1\n");
    fs::remove_file(dir.join("cgroup.type")).unwrap();
    assert!(can_limit(dir, &["cpu"]));
}

const MEMORY: Limits = Limits {
    memory_bytes: Some(1 << 20),
    cpu_percent: None,
};
const CPU: Limits = Limits {
    memory_bytes: None,
    cpu_percent: Some(50),
};
const BOTH: Limits = Limits {
    memory_bytes: MEMORY.memory_bytes,
    cpu_percent: CPU.cpu_percent,
};

/// A process in the group at this path, of those that are mounted at `mounted`.
fn in_group(mounted: &Path, path: &str) -> Own {
    Own {
        mounted: mounted.to_path_buf(),
        dir: mounted.join(path),
    }
}

/// Which limits a command is started with that get a group where, seen from `mounted`.
fn placed(own: &Own, limits: &Limits) -> Option<(String, Limits)> {
    let place = own.place_for(limits).ok()?;
    let dir = place.dir.strip_prefix(&own.mounted).unwrap();
    Some((dir.to_str().unwrap().to_owned(), place.limits))
}

#[test]
fn a_group_is_made_where_all_limits_can_be_held_or_else_one() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path();
    let own = in_group(top, "user/shell");
    group(top, "cpu memory", "memory", "");
    group(&top.join("user"), "memory", "memory", "");
    group(&top.join("user/shell"), "memory", "", "1\n");
    let at = |dir: &str, limits: Limits| Some((dir.to_owned(), limits));
    assert_eq!(placed(&own, &MEMORY), at("user", MEMORY));
    // What is nearest does not have everything; what is further out has.
    assert_eq!(placed(&own, &CPU), at("", CPU));
    assert_eq!(placed(&own, &BOTH), at("", BOTH));
    group(top, "memory", "memory", "");
    assert_eq!(placed(&own, &CPU), None);
    assert_eq!(placed(&own, &BOTH), at("user", MEMORY));
    group(top, "cpu", "cpu", "");
    group(&top.join("user"), "cpu", "cpu", "");
    assert_eq!(placed(&own, &BOTH), at("user", CPU));
}

#[test]
fn what_a_group_does_not_hold_is_said_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path();
    let own = in_group(top, "shell");
    group(top, "memory", "memory", "");
    group(&top.join("shell"), "", "", "1\n");
    let lacks = |limits: &Limits| own.place_for(limits).unwrap().lacks(limits);
    assert!(lacks(&MEMORY).is_none());
    let unheld = lacks(&BOTH).unwrap();
    assert_eq!(unheld.limits, CPU);
    assert_eq!(
        unheld.to_string(),
        "the limit of cpu is not held: no control group of this user can limit cpu"
    );
    group(top, "", "", "");
    let why = own.place_for(&BOTH).unwrap_err();
    assert_eq!(
        why,
        "no control group of this user can limit cpu and memory"
    );
    assert_eq!(
        Unheld::all(&BOTH, "so".into()).to_string(),
        "the limit of cpu is not held, the limit of memory is held for each process alone: so"
    );
}

#[test]
fn the_groups_of_a_job_are_within_that_of_the_job_around_it() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path();
    let job = top.join("outlive-1-job-7");
    group(top, "cpu memory", "cpu memory", "");
    group(&job, "memory", "", "");
    for leaf in ["command", "outlive-worker-8"] {
        group(&job.join(leaf), "", "", "9\n");
        let own = in_group(top, &format!("outlive-1-job-7/{leaf}"));
        let at = |limits: Limits| Some(("outlive-1-job-7".to_owned(), limits));
        assert_eq!(placed(&own, &MEMORY), at(MEMORY));
        assert_eq!(placed(&own, &BOTH), at(MEMORY));
        // There would be one outside, where the limit of memory around it did not hold.
        assert_eq!(placed(&own, &CPU), None);
    }
    // The leaf of a process is no job, and is in none here.
    group(&top.join("outlive-supervisor-8"), "", "", "9\n");
    let own = in_group(top, "outlive-supervisor-8");
    assert_eq!(placed(&own, &BOTH), Some((String::new(), BOTH)));
    assert_eq!(own.outside_of_jobs(), None);
}

#[test]
fn a_worker_leaves_a_command_and_a_supervisor_all_jobs() {
    let top = Path::new("/groups");
    let left = |path: &str| {
        let own = in_group(top, path);
        let below = |dir: &Path| dir.strip_prefix("/groups").unwrap().to_path_buf();
        let worker = own.job_of_command().map(below);
        (worker, own.outside_of_jobs().map(below))
    };
    let at = |path: &str| Some(PathBuf::from(path));
    let nowhere = (None, None);
    assert_eq!(
        left("a/outlive-1-x-7/command"),
        (at("a/outlive-1-x-7"), at("a"))
    );
    assert_eq!(left("a/outlive-1-x-7/outlive-worker-8"), (None, at("a")));
    assert_eq!(
        left("a/outlive-1-x-7/outlive-2-y-8/command"),
        (at("a/outlive-1-x-7/outlive-2-y-8"), at("a"))
    );
    assert_eq!(left("a/command"), nowhere);
    assert_eq!(left("a/outlive-1-x-7"), nowhere);
    // Somebody else's, though it is called nearly so.
    assert_eq!(left("outlive-batch.slice/command"), nowhere);
}

#[test]
fn a_command_was_out_of_memory_where_its_limit_was_hit_and_it_was_killed_for_that() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("outlive-1-job-7");
    fs::create_dir_all(dir.join(LEAF)).unwrap();
    let tell = |hits: u64, kills: u64| {
        let events = |oom, oom_kill| format!("low 0\nmax 9\noom {oom}\noom_kill {oom_kill}\n");
        fs::write(dir.join("memory.events.local"), events(hits, 9)).unwrap();
        fs::write(dir.join(LEAF).join("memory.events.local"), events(9, kills)).unwrap();
    };
    let group = |before| Group {
        dir: dir.clone(),
        before,
    };
    let new = group(Shortage::default());
    assert!(!new.was_out_of_memory());
    for (hits, kills, is) in [(0, 0, false), (0, 1, false), (1, 0, false), (1, 2, true)] {
        tell(hits, kills);
        assert_eq!(new.was_out_of_memory(), is, "{hits} {kills}");
    }
    // What an earlier command in it has had is none of the next one's.
    let next = group(Shortage::of(&dir));
    assert!(!next.was_out_of_memory());
    tell(2, 3);
    assert!(next.was_out_of_memory());
}

#[test]
fn what_workers_that_are_gone_have_left_is_removed_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let dead = {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let gone = scratch.path().join(format!("{PREFIX}1-job-{dead}"));
    let own = scratch
        .path()
        .join(format!("{PREFIX}1-job-{}", std::process::id()));
    let others = scratch.path().join(format!("somebody-{dead}"));
    let leaf = scratch.path().join(format!("{PREFIX}worker-{dead}"));
    for dir in [&gone, &own, &others, &leaf] {
        fs::create_dir_all(dir.join(LEAF)).unwrap();
    }
    remove_abandoned(scratch.path());
    assert!(!gone.exists() && !leaf.exists());
    assert!(own.join(LEAF).is_dir() && others.join(LEAF).is_dir());
}
