//! How much memory those take who fetch.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::outlive;

/// The most that each of them has had resident at a time while it fetched this, as text.
pub(super) fn of(dir: &Path, url: &str) -> String {
    let mut most: BTreeMap<String, u64> = BTreeMap::new();
    let mut child = outlive(dir, url)
        .current_dir(dir)
        .spawn()
        .expect("it can be executed");
    while child.try_wait().expect("a child can be asked").is_none() {
        for (name, kib) in resident(dir) {
            let most = most.entry(name).or_default();
            *most = kib.max(*most);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let shown: Vec<String> = most
        .iter()
        .map(|(name, kib)| format!("{name} {:.1} MiB", *kib as f64 / 1024.0))
        .collect();
    shown.join(", ")
}

/// What the kernel says of those who have a file of the directory open.
fn resident(dir: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry.path();
        let read = |name: &str| fs::read_to_string(process.join(name)).unwrap_or_default();
        let title = read("cmdline").replace('\0', " ");
        let Some(role) = ["outlive worker", "outlive fetcher"]
            .into_iter()
            .find(|role| title.starts_with(role))
        else {
            continue;
        };
        let open = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let is_ours = open
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|target| target.starts_with(dir));
        let status = read("status");
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = most.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
        if let (true, Some(kib)) = (is_ours, kib) {
            found.push((role.to_owned(), kib));
        }
    }
    found
}
