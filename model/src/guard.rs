//! Running checked code so that a panic in it is a finding with a trace, and not the end of the search.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Whether a panic can be caught in this build. Where panics abort, as in the product's release profile, the first one in
/// checked code ends the search, and everything else is as it is elsewhere.
pub const UNWINDS: bool = cfg!(panic = "unwind");

thread_local! {
    static CHECKING: Cell<bool> = const { Cell::new(false) };
}

/// Run checked code. Errors are the words of its panic, which is not printed: the trace says more. In a build that does not
/// [unwind](UNWINDS) it is printed, and the search ends with it.
pub(crate) fn guarded<T>(checked: impl FnOnce() -> T) -> Result<T, String> {
    if UNWINDS {
        hush();
    }
    CHECKING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(checked));
    CHECKING.set(false);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic without words").to_owned()
    })
}

/// Print no panics of checked code, and all others.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !CHECKING.get() {
                print(panic);
            }
        }));
    });
}
