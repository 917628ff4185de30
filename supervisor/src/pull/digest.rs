//! What is checked about a file: read back from it, to the last byte, and never remembered from the way there.

use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use state_machine::pull::reference::is_hex;

/// How much is read at once, in bytes.
const CHUNK: usize = 256 << 10;

/// What a file must come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Digest {
    /// SHA-256 of its bytes, in hexadecimal.
    Sha256(String),
    /// SHA-1 of `blob`, its length and its bytes, as git names its files.
    Git(String),
}

impl Digest {
    /// Read `sha256:…` or `git:…`.
    pub(super) fn parse(text: &str) -> Option<Digest> {
        match text.split_once(':')? {
            ("sha256", hex) if is_hex(hex, 64) => Some(Digest::Sha256(hex.to_owned())),
            ("git", hex) if is_hex(hex, 40) => Some(Digest::Git(hex.to_owned())),
            _ => None,
        }
    }

    /// What a file of this kind comes to.
    pub(super) fn of(&self, file: impl AsFd, length: u64) -> std::io::Result<Digest> {
        let file = File::from(file.as_fd().try_clone_to_owned()?);
        Ok(match self {
            Digest::Sha256(_) => Digest::Sha256(hex(&hashed(Sha256::new(), &file)?)),
            Digest::Git(_) => {
                let head = Sha1::new().chain_update(format!("blob {length}\0"));
                Digest::Git(hex(&hashed(head, &file)?))
            }
        })
    }
}

/// SHA-256 of these bytes, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Read from the first byte on, wherever the offset of the description is.
fn hashed<D: sha2::Digest>(mut hasher: D, file: &File) -> std::io::Result<Vec<u8>> {
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    loop {
        match file.read_at(&mut chunk, at)? {
            0 => return Ok(hasher.finalize().to_vec()),
            read => {
                hasher.update(&chunk[..read]);
                at += read as u64;
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Digest::Sha256(hex) => write!(f, "sha256:{hex}"),
            Digest::Git(hex) => write!(f, "git:{hex}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_in_a_file_is_what_counts() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"hello\n").unwrap();
        let of = |text: &str| {
            Digest::parse(text)
                .unwrap()
                .of(&file, 6)
                .unwrap()
                .to_string()
        };
        // `git hash-object` and sha256sum say the same.
        let zeros = "0".repeat(64);
        assert_eq!(
            of(&format!("git:{}", &zeros[..40])),
            "git:ce013625030ba8dba906f756967f9e9ca394464a"
        );
        assert_eq!(
            of(&format!("sha256:{zeros}")),
            "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        );
    }

    #[test]
    fn only_what_can_be_checked_is_a_digest() {
        for wrong in ["sha256:ab", "md5:0", "sha512:00", "", "git:xyz"] {
            assert_eq!(Digest::parse(wrong), None, "{wrong}");
        }
    }
}
