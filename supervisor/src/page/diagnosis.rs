//! Asking the kernel about one socket of this machine: whose it is (`sock_diag(7)`). The answer comes at once, however many there are.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};

/// `SOCK_DIAG_BY_FAMILY`, and what stands in the head of a message.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const IS_REQUEST: u16 = 1;
const TCP: u8 = 6;
/// Of a message.
const HEAD: usize = 16;
/// Where what tells a socket from others ends in an answer, and four words before the one that is wanted follow.
const WORDS: usize = HEAD + 4 + 48;

/// The user and the inode of the TCP socket at `local` that is connected to `remote`, if there is one.
///
/// # Errors
///
/// The kernel does not tell.
pub(super) fn owner(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<(u32, u32)>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::NETLINK;
    let kernel = socket_with(family, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
    rustix::io::write(&kernel, &question(local, remote))?;
    let mut answer = [0; 1024];
    let length = rustix::io::read(&kernel, &mut answer)?;
    let answer = answer.get(..length).unwrap_or_default();
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok());
    match kind.map(u16::from_ne_bytes) {
        Some(BY_FAMILY) => {
            let (user, inode) = (word(answer, WORDS + 12)?, word(answer, WORDS + 16)?);
            Ok(Some((user, inode)))
        }
        Some(ERROR) => {
            let errno = word(answer, HEAD)?.cast_signed().wrapping_neg();
            match Errno::from_raw_os_error(errno) {
                Errno::NOENT => Ok(None),
                errno => Err(errno.into()),
            }
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn word(answer: &[u8], at: usize) -> io::Result<u32> {
    let word = answer.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map(u32::from_ne_bytes)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn question(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let family = match local {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let mut about = vec![family.as_raw().to_ne_bytes()[0], TCP, 0, 0];
    // Any state.
    about.extend(u32::MAX.to_ne_bytes());
    about.extend(local.port().to_be_bytes());
    about.extend(remote.port().to_be_bytes());
    for address in [local, remote] {
        let mut octets = match address.ip() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        octets.resize(16, 0);
        about.extend(octets);
    }
    // Any device, and whichever socket it is that has the address.
    about.extend(0u32.to_ne_bytes());
    about.extend([0xff; 8]);
    let length = u32::try_from(HEAD + about.len()).unwrap_or(u32::MAX);
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(IS_REQUEST.to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(about);
    message
}
