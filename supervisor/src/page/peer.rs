//! Which user is at the other end of a connection over loopback. What is in a store is its owner's, and a loopback address is everybody's on the
//! machine: the kernel knows whose the other end is.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};

use super::diagnosis;

/// Whether the other end belongs to the user that this process runs as, or to root. One whose socket is closed already is nobody's.
///
/// # Errors
///
/// The table cannot be read: nothing is known then.
pub(super) fn is_ours(here: SocketAddr, there: SocketAddr) -> io::Result<bool> {
    let us = rustix::process::geteuid().as_raw();
    let owner = owner(here, there)?;
    Ok(owner.is_some_and(|owner| owner == us || owner == 0))
}

fn owner(here: SocketAddr, there: SocketAddr) -> io::Result<Option<u32>> {
    match diagnosis::owner(there, here) {
        Ok(owner) => Ok(owner.and_then(|(owner, inode)| (inode != 0).then_some(owner))),
        // Not every kernel and container answers; the table is read whole, which takes a hundred times as long.
        Err(_) => owner_by_table(here, there),
    }
}

fn owner_by_table(here: SocketAddr, there: SocketAddr) -> io::Result<Option<u32>> {
    let table = match there {
        SocketAddr::V4(_) => "/proc/self/net/tcp",
        SocketAddr::V6(_) => "/proc/self/net/tcp6",
    };
    if let Some(owner) = owner_in(table, here, there)? {
        return Ok(Some(owner));
    }
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    // A socket for the newer addresses that was connected to an older one.
    match owner_in("/proc/self/net/tcp6", mapped(here), mapped(there)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        owner => owner,
    }
}

fn owner_in(table: &str, here: SocketAddr, there: SocketAddr) -> io::Result<Option<u32>> {
    let (local, remote) = (in_table(there), in_table(here));
    let mut lines = BufReader::new(File::open(table)?);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        if let Some(owner) = owner_by(&line, &local, &remote) {
            return Ok(Some(owner));
        }
        line.clear();
    }
    Ok(None)
}

/// Whose the socket is that a line is about, if it is this one and somebody has it.
fn owner_by(line: &str, local: &str, remote: &str) -> Option<u32> {
    // sl local remote state queues timer retransmits uid timeout inode
    let mut fields = line.split_ascii_whitespace().skip(1);
    let is_it = fields.next() == Some(local) && fields.next() == Some(remote);
    let owner = fields.nth(4)?.parse().ok()?;
    let inode = fields.nth(1)?;
    (is_it && inode != "0").then_some(owner)
}

/// An address as the table has it: words as the machine keeps them, in hexadecimal.
fn in_table(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut text = String::new();
    for word in octets.chunks_exact(4) {
        // They are four.
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        text.push_str(&format!("{word:08X}"));
    }
    format!("{text}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_a_connection_are_found_and_no_other() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue; // a machine without the newer addresses
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, there) = listener.accept().unwrap();
            let here = server.local_addr().unwrap();
            assert!(is_ours(here, there).unwrap());
            let us = rustix::process::geteuid().as_raw();
            let (told, inode) = diagnosis::owner(there, here).unwrap().unwrap();
            assert!(told == us && inode != 0);
            assert_eq!(owner_by_table(here, there).unwrap(), Some(us));
            let other = SocketAddr::new(there.ip(), there.port() ^ 1);
            assert_eq!(owner(here, other).unwrap(), None);
            assert_eq!(owner_by_table(here, other).unwrap(), None);
            drop(client);
        }
    }

    #[test]
    fn a_socket_that_nobody_has_any_more_is_nobodys() {
        let (here, there) = ("0100007F:1F90", "0100007F:A1B2");
        let line = |uid: &str, inode: &str| {
            format!(
                "  5: {there} {here} 01 00000000:00000000 00:00000000 00000000  {uid}        0 {inode} 1 x 20 4 30 10 -1\n"
            )
        };
        assert_eq!(owner_by(&line("1000", "77"), there, here), Some(1000));
        assert_eq!(owner_by(&line("0", "0"), there, here), None);
        assert_eq!(owner_by(&line("1000", "77"), here, there), None);
        assert_eq!(
            owner_by("  sl  local_address rem_address", there, here),
            None
        );
    }
}
