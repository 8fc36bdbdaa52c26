//! Ports that no other test has.
//!
//! A port that was merely free a moment ago is not: the kernel gives it to the next socket that asks for any. These are below
//! the range it takes such ports from, and each is held by one test at a time.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports of connections (32768 and up) and of the agents' resources (31000 and up).
const FIRST: u16 = 10_000;
const COUNT: u16 = 21_000;

/// A port of loopback that this process alone uses until it is dropped. Servers may bind it, end and bind it again.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Its name is the lock: the kernel gives it to one process, and takes it back at the latest when the process ends.
    _lock: UnixDatagram,
}

impl Port {
    pub fn take() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Processes begin at different places, so that they do not all try the same ports first.
        let start = std::process::id().wrapping_mul(101) % u32::from(COUNT);
        let mut candidates = (0..COUNT).map(|_| {
            let offset = u32::from(NEXT.fetch_add(1, Ordering::Relaxed)) + start;
            FIRST + u16::try_from(offset % u32::from(COUNT)).expect("it is below COUNT")
        });
        candidates.find_map(Self::lock).expect("a free port")
    }

    pub(crate) fn lock(number: u16) -> Option<Self> {
        let name = SocketAddr::from_abstract_name(format!("tepui-port-{number}")).ok()?;
        let lock = UnixDatagram::bind_addr(&name).ok()?;
        TcpListener::bind(("127.0.0.1", number)).ok()?;
        Some(Self { number, _lock: lock })
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:number`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
