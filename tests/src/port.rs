//! Ports on loopback for programs that are told theirs.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that nobody has just now, and that nobody is given who asks for any: those that Linux gives away begin at 32768,
/// unless it was told otherwise.
///
/// # Panics
///
/// When there is none.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at once begin at different ones.
    let first = std::process::id().wrapping_mul(97);
    let ports = (0..12_000).map(|_| {
        let nth = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        20_000 + (nth % 12_000) as u16
    });
    let mut free = ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a port on loopback")
}
