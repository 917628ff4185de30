//! The first half of a write or an append, as a full disk or a death leaves it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use state_machine::control::Control;
use state_machine::disk::Content;

use super::effect::{Filling, Wanted};

/// Do half of an effect. `false` where it has no halves, or where nothing can be written at all.
pub fn half(root: &Path, wanted: &Wanted<'_>) -> bool {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    let bytes = match &wanted.filling {
        None => return false,
        Some(Filling::Write(content)) => {
            options.write(true).truncate(true);
            match content {
                Content::Descriptor(descriptor) => descriptor.encode(),
                Content::Status(status) => status.encode(),
                Content::Request(request) => Control::encode(*request),
                Content::Pointer(pointer) => pointer.encode(),
                // Half of nothing but blanks is shorter, and no less blank.
                Content::Blank => vec![b' '; 64],
            }
        }
        Some(Filling::Append(lines, mend)) => {
            options.append(true);
            let lines = lines.iter().flat_map(|line| line.encode());
            mend.then_some(b'\n').into_iter().chain(lines).collect()
        }
    };
    let Ok(mut file) = options.open(wanted.path(root)) else {
        return false;
    };
    file.write_all(&bytes[..bytes.len() / 2]).is_ok()
}
