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
    let found = |own: &str| locate(HYBRID, own).map(|(_, own)| own);
    let at = |path: &str| Some(PathBuf::from(path));
    assert_eq!(
        found("4:memory:/x\n0::/user.slice/a.scope\n"),
        at("/sys/fs/cgroup/unified/user.slice/a.scope")
    );
    assert_eq!(found("0::/\n"), at("/sys/fs/cgroup/unified/"));
    assert_eq!(found("0::/../outside\n"), None);
    assert_eq!(found("4:memory:/x\n"), None);
    let within = HYBRID.replace("0:28 / ", "0:28 /box ");
    let own = locate(&within, "0::/box/in\n").map(|(_, own)| own);
    assert_eq!(own, at("/sys/fs/cgroup/unified/in"));
    assert_eq!(locate(&within, "0::/elsewhere\n"), None);
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
    // The root has processes, and no type.
    group(dir, "cpu memory", "", "1\n");
    fs::remove_file(dir.join("cgroup.type")).unwrap();
    assert!(can_limit(dir, &["cpu"]));
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
    for dir in [&gone, &own, &others] {
        fs::create_dir_all(dir.join(LEAF)).unwrap();
    }
    remove_abandoned(scratch.path());
    assert!(!gone.exists());
    assert!(own.join(LEAF).is_dir() && others.join(LEAF).is_dir());
}
