//! Socket options: how soon we notice that a peer is gone without a word.

use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt};

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
