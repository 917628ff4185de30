//! Whether the kernel will run a file as a program, as far as that can be told without executing it.
//!
//! Only a yes says anything, and it is no promise: the file can change, and the kernel can refuse it for
//! what is not looked at here. Nothing may rest on it that is not found out by the `exec` as well.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::{Access, FileType, Mode, OFlags, access, open, stat};
use rustix::io::pread;

/// How much of a file is looked at, in bytes: enough for the headers of the file and of its segments,
/// and for the name of its loader, which linkers put right behind those.
const HEAD: usize = 4096;

/// What `e_machine` is in programs of this machine; none where that has not been looked up.
pub(super) const MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(62)
} else if cfg!(target_arch = "aarch64") {
    Some(183)
} else {
    None
};

/// How programs of this machine begin: 64 bits, and its order of bytes.
const MAGIC: [u8; 6] = [
    0x7f,
    b'E',
    b'L',
    b'F',
    2,
    if cfg!(target_endian = "little") { 1 } else { 2 },
];

/// What `e_type` is in a program with fixed addresses, and in one that runs at any.
const TYPES: [u16; 2] = [2, 3];

/// Size of the header of a segment, in bytes, and the type of the segment that names the loader.
const SEGMENT: usize = 56;
const NAMES_LOADER: u32 = 3;

/// Whether `file` is a regular file that we may execute, a program of this machine, and its loader, if it
/// has one, may be executed too.
pub(super) fn is_program(file: &CStr) -> bool {
    // Asked before it is opened: opening anything else can wait for somebody, or set something going.
    let is_regular =
        stat(file).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile);
    if !is_regular || access(file, Access::EXEC_OK).is_err() {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(file, flags, Mode::empty()).is_ok_and(|file| begins_well(&file))
}

fn begins_well(file: &OwnedFd) -> bool {
    let mut head = [0; HEAD];
    let Ok(length) = pread(file, &mut head, 0) else {
        return false;
    };
    match read(&head[..length]) {
        Some(Loader::None) => true,
        Some(Loader::At(loader)) => access(loader, Access::EXEC_OK).is_ok(),
        None => false,
    }
}

/// What loads a program.
#[derive(Debug, PartialEq, Eq)]
enum Loader<'a> {
    /// The kernel alone.
    None,
    /// The program of this name.
    At(&'a CStr),
}

/// Reads the first bytes of a file; `None` when they are not those of a program of this machine, or not as
/// they usually are.
fn read(head: &[u8]) -> Option<Loader<'_>> {
    let half = |at: usize| Some(u16::from_ne_bytes(*head.get(at..)?.first_chunk()?));
    let long = |at: usize| {
        let long = u64::from_ne_bytes(*head.get(at..)?.first_chunk()?);
        usize::try_from(long).ok()
    };
    let is_ours = head.starts_with(&MAGIC)
        && TYPES.contains(&half(16)?)
        && MACHINE.is_some_and(|machine| half(18) == Some(machine))
        && usize::from(half(54)?) == SEGMENT;
    if !is_ours {
        return None;
    }
    let (first, count) = (long(32)?, usize::from(half(56)?));
    let segments = head.get(first..)?.get(..count * SEGMENT)?;
    let named = segments
        .chunks_exact(SEGMENT)
        .position(|segment| segment.starts_with(&NAMES_LOADER.to_ne_bytes()));
    let Some(nth) = named else {
        return (count > 0).then_some(Loader::None);
    };
    let segment = first + nth * SEGMENT;
    let (name, size) = (long(segment + 8)?, long(segment + 32)?);
    let name = CStr::from_bytes_with_nul(head.get(name..)?.get(..size)?).ok()?;
    Some(Loader::At(name))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, copy, read as bytes_of, set_permissions, write};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn is_one(path: &Path) -> bool {
        is_program(&std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap())
    }

    /// A program that is there on every machine, without what leads to it.
    fn shell() -> std::path::PathBuf {
        std::fs::canonicalize("/bin/sh").unwrap()
    }

    #[test]
    fn a_program_is_one_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        copy(shell(), path("program")).unwrap();
        std::os::unix::fs::symlink("program", path("link")).unwrap();
        assert!(is_one(&path("program")));
        assert!(is_one(&path("link")));
        assert!(is_one(&std::env::current_exe().unwrap()));

        write(path("script"), "#!/bin/sh\n").unwrap();
        write(path("empty"), "").unwrap();
        for name in ["script", "empty"] {
            set_permissions(path(name), Permissions::from_mode(0o700)).unwrap();
            assert!(!is_one(&path(name)), "{name}");
        }
        set_permissions(path("program"), Permissions::from_mode(0o600)).unwrap();
        for name in ["program", "link", ".", "missing", "program/x"] {
            assert!(!is_one(&path(name)), "{name}");
        }
        let pipe = std::ffi::CString::new(path("pipe").as_os_str().as_bytes()).unwrap();
        nix::unistd::mkfifo(pipe.as_c_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(!is_program(&pipe));
    }

    #[test]
    fn a_loader_that_is_missing_is_seen() {
        let mut bytes = bytes_of(shell()).unwrap();
        let Some(Loader::At(loader)) = read(&bytes[..HEAD]) else {
            // A machine whose shell is linked statically has no loader to miss.
            return;
        };
        let (loader, known) = (loader.to_bytes().to_vec(), loader.to_bytes().len());
        let at = bytes
            .windows(known)
            .position(|part| part == loader)
            .unwrap();
        bytes[at + known - 1] ^= 1;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        write(&path, bytes).unwrap();
        set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        assert!(!is_one(&path));
    }

    #[test]
    fn what_is_cut_or_changed_is_no_program_and_does_no_harm() {
        let bytes = bytes_of(shell()).unwrap();
        let head = &bytes[..HEAD];
        assert!(read(head).is_some());
        for length in 0..64 {
            assert_eq!(read(&head[..length]), None);
        }
        for (at, name) in [
            (0, "magic"),
            (4, "bits"),
            (5, "order"),
            (18, "machine"),
            (54, "size"),
        ] {
            let mut head = head.to_vec();
            head[at] ^= 0x40;
            assert_eq!(read(&head), None, "{name}");
        }
        for at in 0..head.len() {
            let mut head = head.to_vec();
            head[at] = 0xff;
            // Whatever it says: it must not read outside of what there is.
            let _ = read(&head);
        }
    }
}
