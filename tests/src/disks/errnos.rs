//! Which errors an effect can end in, one table. Each row is what the manual pages of the calls behind the effect give
//! (section 2, ERRORS), without what only a wrong program meets (EBADF, EFAULT, EINVAL of flags), what the names here
//! cannot cause (ENAMETOOLONG), and what the disk turns into a value (ENOENT, EEXIST, ENOTEMPTY, ENOTDIR, EISDIR,
//! EWOULDBLOCK). EIO is in every row where a device is asked, though the pages of open and stat leave it out.
//!
//! EINTR is in none: the disk repeats the call itself. Close is not in it: whatever it says, the descriptor is gone, and the
//! disk has nothing to tell (close(2), NOTES).

use rustix::io::Errno;

use super::effect::Kind;

/// What the disk makes of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An error that no protocol decides on.
    Fault,
    /// The value *denied*.
    Denied,
}

use Outcome::{Denied, Fault};

/// The errors of an effect.
type Row = &'static [(Errno, Outcome)];

/// Every effect that can fail.
pub const ERRNOS: &[(Kind, Row)] = &[
    // open(2), of a file that is there. ELOOP: a symbolic link in its place (O_NOFOLLOW).
    (
        Kind::Open,
        &[
            (Errno::ACCESS, Denied),
            (Errno::PERM, Denied),
            (Errno::LOOP, Denied),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::ROFS, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // open(2) with O_CREAT, fchmod(2).
    (
        Kind::Create,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::DQUOT, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // flock(2). EBADF: NFS, of a descriptor that is not open for writing (F26). EOPNOTSUPP: a file system without locks.
    (
        Kind::Lock,
        &[
            (Errno::NOLCK, Fault),
            (Errno::BADF, Fault),
            (Errno::OPNOTSUPP, Fault),
        ],
    ),
    // fstat(2), lstat(2).
    (
        Kind::Stands,
        &[
            (Errno::ACCESS, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    (
        Kind::Exists,
        &[
            (Errno::ACCESS, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // open(2), fstat(2), read(2).
    (
        Kind::Read,
        &[
            (Errno::ACCESS, Fault),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // open(2) with O_CREAT, write(2). EFBIG: RLIMIT_FSIZE.
    (
        Kind::Write,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::DQUOT, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::FBIG, Fault),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // open(2), fstat(2), write(2). ENOSPC: a file system that writes elsewhere what it writes anew. EFBIG: RLIMIT_FSIZE, which
    // asks where is written and not whether the file grows.
    (
        Kind::Fill,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::DQUOT, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::FBIG, Fault),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    (
        Kind::Append,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::DQUOT, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::FBIG, Fault),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // open(2), fsync(2).
    (
        Kind::Sync,
        &[
            (Errno::ACCESS, Fault),
            (Errno::DQUOT, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // rename(2).
    (
        Kind::Rename,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::BUSY, Fault),
            (Errno::DQUOT, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::XDEV, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // renameat2(2). EINVAL: a file system that cannot refuse to replace. EMLINK: a full parent.
    (
        Kind::RenameNew,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::BUSY, Fault),
            (Errno::DQUOT, Fault),
            (Errno::INVAL, Fault),
            (Errno::MLINK, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::XDEV, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // link(2). EPERM: a file system without second names.
    (
        Kind::Link,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::DQUOT, Fault),
            (Errno::MLINK, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::XDEV, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // unlink(2).
    (
        Kind::Unlink,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::BUSY, Fault),
            (Errno::ROFS, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // mkdir(2), chmod(2).
    (
        Kind::Mkdir,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::DQUOT, Fault),
            (Errno::MLINK, Fault),
            (Errno::NOSPC, Fault),
            (Errno::ROFS, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // rmdir(2).
    (
        Kind::Rmdir,
        &[
            (Errno::ACCESS, Fault),
            (Errno::PERM, Fault),
            (Errno::BUSY, Fault),
            (Errno::ROFS, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
    // open(2), getdents(2).
    (
        Kind::List,
        &[
            (Errno::ACCESS, Fault),
            (Errno::MFILE, Fault),
            (Errno::NFILE, Fault),
            (Errno::NOMEM, Fault),
            (Errno::IO, Fault),
        ],
    ),
];

/// The errors that an effect can end in.
pub fn errnos(kind: Kind) -> Row {
    ERRNOS
        .iter()
        .find(|(known, _)| *known == kind)
        .map_or(&[], |(_, row)| row)
}
