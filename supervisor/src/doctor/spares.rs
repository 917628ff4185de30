//! The directories that are laid in. One that is not as it should be costs the next start a little time and is not used.

use std::path::Path;

use state_machine::disk::{Dir, Disk, Place, Read};
use state_machine::protocol::spare::SPARES;

use super::{Finding, Mend, kind, modes, names, or_unreadable, stray};
use crate::error::Result;
use crate::store::Store;

pub(super) fn examine(store: &Store) -> Result<Vec<Finding>> {
    let dir = store.root().join("spares");
    let mut findings = Vec::new();
    for name in names(&dir)? {
        let (path, shown) = (dir.join(&name), format!("spares/{}", name.display()));
        let is_number = |number: &u8| name.to_str() == Some(number.to_string().as_str());
        let number = (0..SPARES).find(is_number);
        let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let Some(number) = number.filter(|_| is_dir) else {
            findings.push(stray(&path, &shown));
            continue;
        };
        let seen = of_descriptor(store, number, &path, &shown);
        findings.extend(or_unreadable(seen));
        // Whatever is odd in one: it is not used for that, and nothing is lost with it.
        let in_it = modes::of_spare(&path).into_iter();
        findings.extend(in_it.map(|finding| Finding {
            what: format!("{shown}: {}", finding.what),
            ..finding
        }));
    }
    Ok(findings)
}

fn of_descriptor(store: &Store, number: u8, path: &Path, shown: &str) -> Result<Option<Finding>> {
    let mut disk = store.disk();
    let Read::Value(descriptor) = disk.read_descriptor(&Dir::Spare(number))? else {
        return Ok(None);
    };
    if disk.exists(&Place::Dir(Dir::Job(descriptor.id)))? {
        return Ok(None);
    }
    let what = format!("{shown} was taken, and a loss of power has brought it back");
    let finding = Finding::new(kind::SPARE, what, "it is not used");
    Ok(Some(finding.at(path).mended_by(Mend::Collect)))
}
