//! Sockets: how soon we notice that a peer is gone without a word, and under which address peers find us.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt};
use rustix::process::{Resource, getrlimit};

/// Silence after which the kernel asks the peer whether it is there, in seconds.
const KEEPALIVE_IDLE_SECS: u32 = 30;
/// Between the questions, in seconds.
const KEEPALIVE_INTERVAL_SECS: u32 = 10;
/// Unanswered questions until the connection is broken.
const KEEPALIVE_PROBES: u32 = 3;
/// How long sent bytes may stay unacknowledged, in milliseconds: the same time in all.
const UNACKNOWLEDGED_MS_MAX: u32 = 60_000;

/// Makes a half-open connection fail within a minute, and small records leave at once.
pub fn keep_alive(socket: &tokio::net::TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let fd = socket.as_fd();
    setsockopt(&fd, sockopt::KeepAlive, &true)?;
    setsockopt(&fd, sockopt::TcpKeepIdle, &KEEPALIVE_IDLE_SECS)?;
    setsockopt(&fd, sockopt::TcpKeepInterval, &KEEPALIVE_INTERVAL_SECS)?;
    setsockopt(&fd, sockopt::TcpKeepCount, &KEEPALIVE_PROBES)?;
    setsockopt(&fd, sockopt::TcpUserTimeout, &UNACKNOWLEDGED_MS_MAX)?;
    Ok(())
}

/// How many files this process may have open, connections among them; none if there is no limit.
pub(crate) fn open_files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The address that peers should use for a socket bound to `bound`: itself, unless it means "all of them".
pub fn advertised_ip(bound: IpAddr) -> IpAddr {
    if !bound.is_unspecified() {
        return bound;
    }
    // Nothing is sent: connecting a datagram socket only asks which way out there is.
    let outward = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    };
    outward().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}
