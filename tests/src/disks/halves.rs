//! The first half of a write, a fill or an append, as a full disk or a death leaves it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use state_machine::control::Control;
use state_machine::disk::Content;

use super::effect::{Filling, Wanted};

/// Do half of an effect. `false` where it has no halves, or where nothing can be written at all.
pub fn half(root: &Path, wanted: &Wanted<'_>) -> bool {
    let mut options = OpenOptions::new();
    // No protocol writes through a link, and none waits for the reader of a FIFO.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits() as i32);
    let (bytes, needs_room) = match &wanted.filling {
        None => return false,
        Some(Filling::Write(content)) => {
            options.create(true).write(true).truncate(true);
            (encode(content), false)
        }
        Some(Filling::Fill(content)) => {
            options.write(true);
            (encode(content), true)
        }
        Some(Filling::Append(lines, mend)) => {
            options.create(true).append(true);
            let lines = lines.iter().flat_map(|line| line.encode());
            let bytes = mend.then_some(b'\n').into_iter().chain(lines).collect();
            (bytes, false)
        }
    };
    let Ok(mut file) = options.open(wanted.path(root)) else {
        return false;
    };
    let room = file.metadata().map_or(0, |stat| stat.len());
    if needs_room && room < bytes.len() as u64 {
        return false;
    }
    file.write_all(&bytes[..bytes.len() / 2]).is_ok()
}

fn encode(content: &Content) -> Vec<u8> {
    match content {
        Content::Descriptor(descriptor) => descriptor.encode(),
        Content::Status(status) => status.encode(),
        Content::Request(request) => Control::encode(*request),
        Content::Pointer(pointer) => pointer.encode(),
        Content::Pool(pool) => pool.encode(),
        Content::Slot(slot) => slot.encode(),
        Content::Session(session) => session.encode(),
        Content::Part(part) => part.encode(),
        Content::Raw(bytes) => bytes.clone(),
        // Half of nothing but blanks is shorter, and no less blank.
        Content::Blank => vec![b' '; 64],
    }
}
