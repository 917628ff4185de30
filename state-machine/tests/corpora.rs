//! Every file of the fuzz corpora, replayed without a fuzzer.

// The targets are shared with the fuzz crate, where they are its library.
#[allow(unreachable_pub)]
#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

/// Run `target` on every file of its corpus; a file that fails is named.
fn replay(corpus: &str, target: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(corpus);
    let mut seen = 0;
    for entry in std::fs::read_dir(&dir).expect("the corpus is there") {
        let path = entry.expect("the corpus can be listed").path();
        let bytes = std::fs::read(&path).expect("a seed can be read");
        let outcome = std::panic::catch_unwind(|| target(&bytes));
        assert!(outcome.is_ok(), "{} fails", path.display());
        seen += 1;
    }
    assert!(seen >= 10, "{corpus}: only {seen} seeds");
}

#[test]
fn descriptors() {
    replay("descriptor", targets::descriptor);
}

#[test]
fn statuses() {
    replay("status", targets::status);
}

#[test]
fn histories() {
    replay("events", targets::events);
}

#[test]
fn configurations() {
    replay("config", targets::config);
}

#[test]
fn controls() {
    replay("control", targets::control);
}

#[test]
fn slots() {
    replay("slot", targets::slot);
}

#[test]
fn pointers() {
    replay("pointer", targets::pointer);
}

#[test]
fn requests() {
    replay("request", targets::request);
}
