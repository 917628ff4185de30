//! The token of those who may change something. It is never written anywhere, and is compared in a time that does not depend on it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

/// How short a token may be that somebody has chosen, in bytes.
const SHORTEST: usize = 16;
/// And how long.
const LONGEST: usize = 512;

/// What a token comes to.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A new one, and the token that it is of.
    ///
    /// # Errors
    ///
    /// The kernel has no randomness yet.
    pub(crate) fn make() -> io::Result<(Secret, String)> {
        let mut bytes = [0; 24];
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((Secret::of(token.as_bytes()), token))
    }

    /// The one in a file that nobody else may read: its first line.
    ///
    /// # Errors
    ///
    /// In words.
    pub(crate) fn read(path: &Path) -> Result<Secret, String> {
        let cannot =
            |why: &dyn std::fmt::Display| format!("the token in {}: {why}", path.display());
        // A FIFO is not waited for.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(|error| cannot(&error))?;
        let about = file.metadata().map_err(|error| cannot(&error))?;
        if !about.is_file() {
            return Err(cannot(&"it is no file"));
        }
        if about.mode() & 0o077 != 0 {
            return Err(cannot(&"others may read or write the file; chmod 600 it"));
        }
        if about.uid() != geteuid().as_raw() {
            return Err(cannot(&"the file is another user's"));
        }
        let mut text = Vec::new();
        let most = LONGEST as u64 + 1;
        file.take(most)
            .read_to_end(&mut text)
            .map_err(|error| cannot(&error))?;
        let line = text.split(|byte| *byte == b'\n').next();
        let token = line.unwrap_or_default().trim_ascii();
        if !(SHORTEST..=LONGEST).contains(&token.len()) {
            return Err(cannot(&format!(
                "it must have {SHORTEST} to {LONGEST} bytes"
            )));
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(cannot(&"it must be of printable ASCII characters"));
        }
        Ok(Secret::of(token))
    }

    fn of(token: &[u8]) -> Secret {
        Secret(Sha256::digest(token).into())
    }

    /// Whether a request has it: `Authorization: Bearer TOKEN`.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (given.next(), given.next()) else {
            return false;
        };
        let Some(token) = value.as_bytes().strip_prefix(b"Bearer ") else {
            return false;
        };
        // What is compared has the same length whatever was sent, and all of it is.
        let other = Secret::of(token);
        let differing = self
            .0
            .iter()
            .zip(other.0)
            .fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn has(secret: &Secret, values: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        secret.is_in(&headers)
    }

    #[test]
    fn a_token_is_that_and_nothing_else() {
        let (secret, token) = Secret::make().unwrap();
        let (other, _) = Secret::make().unwrap();
        let given = format!("Bearer {token}");
        assert!(has(&secret, &[&given]));
        assert!(!has(&other, &[&given]));
        assert!(!has(&secret, &[]));
        assert!(!has(&secret, &[&given, &given]));
        assert!(!has(&secret, &[&token]));
        assert!(!has(&secret, &[&given[..given.len() - 1]]));
        assert!(!has(&secret, &["Bearer "]));
        assert!(!format!("{secret:?}").contains(&token));
    }

    #[test]
    fn a_file_with_a_token_is_its_owners_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Secret::read(&path)
        };
        let secret = write("0123456789abcdef\n", 0o600).unwrap();
        assert!(has(&secret, &["Bearer 0123456789abcdef"]));
        assert!(
            write("0123456789abcdef\n", 0o640)
                .unwrap_err()
                .contains("chmod")
        );
        // Only root can give a file away, and read it then.
        if geteuid().is_root() {
            write("0123456789abcdef\n", 0o600).unwrap();
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            assert!(Secret::read(&path).unwrap_err().contains("another user's"));
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        assert!(write("short\n", 0o600).is_err());
        assert!(write("with a blank in it, and long\n", 0o600).is_err());
        assert!(write(&"x".repeat(600), 0o600).is_err());
        assert!(Secret::read(dir.path()).is_err());
        assert!(Secret::read(&dir.path().join("gone")).is_err());
    }
}
