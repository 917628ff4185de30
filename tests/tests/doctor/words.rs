//! The words for kinds: each is documented, and tried.

use std::collections::BTreeSet;

use outlive_tests::bench;

use crate::{histories, jobs, keys, pools, store};

#[test]
fn every_kind_is_documented_and_has_a_row() {
    let bench = bench!();
    let kinds = bench.run(["doctor", "--kinds", "--json"]).expect(0).json();
    let rows = [
        store::rows(),
        jobs::rows(),
        histories::rows(),
        keys::rows(),
        pools::rows(),
    ];
    let tried: BTreeSet<&str> = rows.iter().flatten().map(|row| row.kind).collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/doctor.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut known = BTreeSet::new();
    for kind in kinds.as_array().unwrap() {
        let text = |name: &str| kind[name].as_str().unwrap_or("nothing");
        let word = text("kind");
        // Without root nothing can be given to another user; what hides a part of the store has a test of its own.
        assert!(
            tried.contains(word) || matches!(word, "owner" | "unreadable"),
            "{word} is not tried"
        );
        let line = format!(
            "| `{word}` | {} | {} | {} |",
            text("severity"),
            text("what"),
            text("fix")
        );
        assert!(page.contains(&line), "docs/doctor.md lacks {line}");
        known.insert(word);
    }
    for word in tried {
        assert!(known.contains(word), "{word} is no kind");
    }
    let shown = bench.run(["doctor", "--kinds"]).expect(0).text();
    assert!(
        shown.contains("pool-garbage") && shown.contains("--fix"),
        "{shown}"
    );
    bench.audit();
}
