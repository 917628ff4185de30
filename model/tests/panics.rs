//! In which worlds checked code panics before what is wrong with them is found: a build that aborts on a panic leaves out
//! these, and only these. The only test in its file, as it counts the panics of the whole process.

use std::sync::atomic::{AtomicU32, Ordering};

use outlive_model::config;
use outlive_model::mutant::table;

static PANICS: AtomicU32 = AtomicU32::new(0);

#[test]
fn no_world_panics_but_those_that_say_so() {
    let worlds = || config::findings().into_iter().chain(config::mutants());
    // The first search sets the hook that keeps panics of checked code from being printed; this one goes before it.
    let first = worlds().find(|world| !world.panics);
    assert!(table::catch_in(first.expect("some do not panic")).is_some());
    let hushed = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        hushed(panic);
    }));
    let mut differ = Vec::new();
    for world in worlds() {
        let (name, says_so) = (world.name, world.panics);
        let before = PANICS.load(Ordering::Relaxed);
        // One thread: what is searched before it is found is the same every time.
        assert!(table::catch_in(world).is_some(), "{name}");
        if (PANICS.load(Ordering::Relaxed) > before) != says_so {
            differ.push(name);
        }
    }
    assert!(differ.is_empty(), "{differ:?}");
}
