//! The directories that are laid in. One that is not as it should be costs the next start a little time and is not used.

use state_machine::disk::{Dir, Disk, Place, Read};
use state_machine::protocol::spare::SPARES;

use super::{Finding, Mend, kind, modes, names, stray};
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
        if let Read::Value(descriptor) = store.disk().read_descriptor(&Dir::Spare(number))?
            && !store.disk().exists(&Place::Dir(Dir::Job(descriptor.id)))?
        {
            let what = format!("{shown} was taken, and a loss of power has brought it back");
            let finding = Finding::new(kind::SPARE, what, "it is not used");
            findings.push(finding.at(&path).mended_by(Mend::Collect));
        }
        // Whatever is odd in one: it is not used for that, and nothing is lost with it.
        let in_it = modes::of_spare(&path).into_iter();
        findings.extend(in_it.map(|finding| Finding {
            what: format!("{shown}: {}", finding.what),
            ..finding
        }));
    }
    Ok(findings)
}
