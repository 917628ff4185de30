//! Getting the protocols wrong, one effect at a time, and seeing that it is noticed.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;

use outlive_model::mutant::Edit;
use outlive_model::mutant::table::{self, Caught, Stage};
use outlive_model::rule::Rule;
use outlive_model::{golden, guard};

use super::{Asked, must_unwind};

/// Every mutant, tried or to be tried, in the order of the table.
struct Progress {
    edits: Vec<Edit>,
    caught: Vec<Option<Option<Caught>>>,
    next: usize,
    told: usize,
    good: bool,
}

/// Try every mutant, as many at a time as there are threads. Assertions of the protocols fail in some on the way, as does the
/// one that keeps an edit from going round for ever.
pub(crate) fn mutants(asked: &Asked) -> ExitCode {
    if !guard::UNWINDS {
        return must_unwind("mutants", "mutants");
    }
    let is_asked = |edit: &Edit| {
        let name = edit.to_string();
        let is_shown = |shown: &String| {
            name == *shown || shown.ends_with('/') && name.starts_with(shown.as_str())
        };
        let is_of_kind = match table::why_harmless(&name) {
            Some(_) => asked.harmless,
            None => asked.caught,
        };
        is_of_kind && asked.show.as_ref().is_none_or(is_shown)
    };
    let edits: Vec<Edit> = table::edits().into_iter().filter(is_asked).collect();
    let progress = Mutex::new(Progress {
        caught: edits.iter().map(|_| None).collect(),
        edits,
        next: 0,
        told: 0,
        good: true,
    });
    let stages = table::stages(asked.config.as_deref());
    std::thread::scope(|scope| {
        for _ in 0..asked.threads {
            scope.spawn(|| try_one_after_the_other(&progress, &stages, asked));
        }
    });
    let progress = progress.into_inner().expect("no thread panics");
    summary(&progress);
    let gone = asked.show.is_none() && !asked.bless && are_gone();
    if progress.good && !gone {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn try_one_after_the_other(progress: &Mutex<Progress>, stages: &[Stage], asked: &Asked) {
    loop {
        let (number, edit) = {
            let mut progress = progress.lock().expect("no thread panics");
            let number = progress.next;
            let Some(&edit) = progress.edits.get(number) else {
                return;
            };
            progress.next += 1;
            (number, edit)
        };
        let caught = catch(edit, stages, asked);
        let mut progress = progress.lock().expect("no thread panics");
        progress.caught[number] = Some(caught);
        progress.tell(asked);
    }
}

/// Where it is written down how a mutant is caught, that is seen first: it spares the smaller worlds, in which it is not.
fn catch(edit: Edit, stages: &[Stage], asked: &Asked) -> Option<Caught> {
    let name = edit.to_string();
    let written = golden::MUTANTS.get(&name).filter(|_| !asked.bless);
    written
        .and_then(|written| table::catch_as(written, edit, stages))
        .or_else(|| table::catch(edit, stages))
}

impl Progress {
    /// Tell of those that are tried, in order.
    fn tell(&mut self, asked: &Asked) {
        while let Some(Some(caught)) = self.caught.get(self.told) {
            let name = self.edits[self.told].to_string();
            let (good, verdict) = judge(&name, caught.as_ref(), asked.bless);
            say!("{name:<48} {verdict}");
            if let (Some(_), Some(caught)) = (&asked.show, caught) {
                say!("{}", caught.lanes);
            }
            self.good &= good;
            self.told += 1;
        }
    }
}

/// Whether a mutant is noticed as is written down, and what there is to say.
fn judge(name: &str, caught: Option<&Caught>, bless: bool) -> (bool, String) {
    match (caught, table::why_harmless(name)) {
        (Some(caught), None) => {
            let found = caught.to_string();
            let known = golden::MUTANTS.get(name);
            if bless {
                let written = golden::MUTANTS.write(name, &found);
                return (written.is_ok(), found);
            }
            match known {
                Some(known) if known == found => (true, found),
                Some(known) => (false, format!("{found}, WHERE {known} is written down")),
                None => (false, format!("{found}, WHERE nothing is written down")),
            }
        }
        (None, Some(why)) => (true, format!("harmless: {why}")),
        (Some(caught), Some(_)) => (false, format!("CAUGHT, and said to be harmless: {caught}")),
        (None, None) => (false, "SURVIVES".into()),
    }
}

/// Whether something is written down about a mutant that there is not: its effect was taken out of the protocol.
fn are_gone() -> bool {
    let there: Vec<String> = table::edits().iter().map(Edit::to_string).collect();
    let written = golden::MUTANTS.names();
    let harmless = table::HARMLESS.iter().map(|&(name, _)| name);
    let mut gone = false;
    for name in written
        .chain(harmless)
        .filter(|name| !there.iter().any(|known| known == name))
    {
        say!("{name:<48} IS WRITTEN DOWN, and there is no such effect");
        gone = true;
    }
    gone
}

fn summary(progress: &Progress) {
    let caught: Vec<&Caught> = progress.caught.iter().flatten().flatten().collect();
    let mut rules: BTreeMap<Rule, usize> = BTreeMap::new();
    for rule in caught.iter().flat_map(|caught| &caught.rules) {
        *rules.entry(*rule).or_default() += 1;
    }
    let unseen = caught.iter().filter(|caught| caught.rules.is_empty());
    say!("\n{} of {} are caught", caught.len(), progress.edits.len());
    say!("{:>4} keep something from ever being seen", unseen.count());
    for (rule, number) in rules {
        say!("{number:>4} break {rule:?}");
    }
}
