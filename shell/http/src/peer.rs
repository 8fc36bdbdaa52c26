//! The user behind a connection from this machine, for programs without authentication.
//!
//! TCP has no peer credentials; the kernel reports the user of a socket to a caller with both of its addresses. See
//! `docs/adr/0010-local-callers-without-authentication.md`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

/// `nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// `inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
/// Places in an answer: a header, then `inet_diag_msg`.
const ERROR_AT: usize = HEADER_BYTES;
const REMOTE_PORT_AT: usize = HEADER_BYTES + 6;
const UID_AT: usize = HEADER_BYTES + 64;
const INODE_AT: usize = HEADER_BYTES + 68;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Another machine, or another network namespace.
    Remote,
    /// A process of this user.
    Local(u32),
    /// A process of this machine that has closed its end, so that its user is unknown.
    Unknown,
}

/// Finds the user of the peer of a connection whose end here is `local`.
pub fn find(peer: SocketAddr, local: SocketAddr) -> Peer {
    // An address of this machine can be bound here, others cannot.
    if UdpSocket::bind((peer.ip().to_canonical(), 0)).is_err() {
        return Peer::Remote;
    }
    match query_kernel(&request(peer, local)) {
        Ok(answer) => user_of(&answer, local.port()),
        Err(err) => {
            tracing::warn!(%err, "cannot determine the user of a local caller");
            Peer::Unknown
        }
    }
}

/// Logs a warning with the effect if this kernel does not report users of sockets.
pub fn warn_unless_supported(effect: &str) {
    if !is_supported().unwrap_or_default() {
        tracing::warn!("the kernel does not report users of connections (module tcp_diag): {effect}");
    }
}

fn is_supported() -> io::Result<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let local = listener.local_addr()?;
    let client = TcpStream::connect(local)?;
    Ok(matches!(find(client.local_addr()?, local), Peer::Local(_)))
}

/// Requests the one socket with the own address `peer` and the remote address `local`.
fn request(peer: SocketAddr, local: SocketAddr) -> Vec<u8> {
    let (own, remote) = (peer.ip().to_canonical(), local.ip().to_canonical());
    let family = if own.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut bytes = Vec::with_capacity(HEADER_BYTES + REQUEST_BYTES);
    bytes.extend(((HEADER_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend([0; 8]); // Sequence number and sender: there is one request, and the kernel has its sender.
    bytes.extend([family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes()); // In any state.
    bytes.extend(peer.port().to_be_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(padded(own));
    bytes.extend(padded(remote));
    bytes.extend(0u32.to_ne_bytes()); // On any interface.
    bytes.extend([u8::MAX; 8]); // No cookie.
    bytes
}

/// An address in the room of the longest.
fn padded(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip.octets());
            bytes
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The kernel answers synchronously.
fn query_kernel(request: &[u8]) -> nix::Result<Vec<u8>> {
    let (raw, protocol) = (SockType::Raw, SockProtocol::NetlinkSockDiag);
    let netlink = socket(AddressFamily::Netlink, raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    send(netlink.as_raw_fd(), request, MsgFlags::empty())?;
    let mut answer = vec![0; 1024];
    let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
    answer.truncate(length);
    Ok(answer)
}

/// The user of the socket in an answer, if it is that of a connection with our `port`.
fn user_of(answer: &[u8], port: u16) -> Peer {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    if kind != Some(BY_FAMILY) {
        let error = word(ERROR_AT).map(|error| Errno::from_raw((error as i32).wrapping_neg()));
        if error != Some(Errno::ENOENT) {
            tracing::warn!(?error, "cannot determine the user of a local caller");
        }
        return Peer::Unknown;
    }
    // Of a connection that is gone, the kernel may show one that listens on the same port.
    let is_with_us = answer.get(REMOTE_PORT_AT..REMOTE_PORT_AT + 2) == Some(&port.to_be_bytes());
    // A socket that no process has any more is shown as root's, without an inode.
    let has_process = word(INODE_AT).is_some_and(|inode| inode != 0);
    match word(UID_AT) {
        Some(uid) if is_with_us && has_process => Peer::Local(uid),
        _ => Peer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u16, remote_port: u16, uid: u32, inode: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES + 72];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[REMOTE_PORT_AT..REMOTE_PORT_AT + 2].copy_from_slice(&remote_port.to_be_bytes());
        bytes[UID_AT..UID_AT + 4].copy_from_slice(&uid.to_ne_bytes());
        bytes[INODE_AT..INODE_AT + 4].copy_from_slice(&inode.to_ne_bytes());
        bytes
    }

    #[test]
    fn peer_user_is_parsed_from_socket_diagnostics() {
        for (answer, expected) in [
            (answer(BY_FAMILY, 5051, 1000, 8), Peer::Local(1000)),
            (answer(BY_FAMILY, 5051, 0, 8), Peer::Local(0)),
            // A closed socket is shown as root's.
            (answer(BY_FAMILY, 5051, 0, 0), Peer::Unknown),
            // A socket that listens on the port of the peer.
            (answer(BY_FAMILY, 0, 1000, 8), Peer::Unknown),
            (answer(libc::NLMSG_ERROR as u16, 0, 0, 0), Peer::Unknown),
            (answer(BY_FAMILY, 5051, 0, 8)[..60].to_vec(), Peer::Unknown),
            (Vec::new(), Peer::Unknown),
        ] {
            assert_eq!(user_of(&answer, 5051), expected, "{answer:?}");
        }
    }

    #[test]
    fn peer_user_of_a_local_connection_is_found() {
        let own = Peer::Local(nix::unistd::geteuid().as_raw());
        assert!(is_supported().expect("loopback works"));
        for listen in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let port = listener.local_addr().expect("bound").port();
            let to = if listen.starts_with("[::1]") { "::1" } else { "127.0.0.1" };
            let client = TcpStream::connect((to, port)).expect("connected");
            let (server, peer) = listener.accept().expect("accepted");
            let local = server.local_addr().expect("connected");
            assert_eq!(find(peer, local), own, "{listen}");
            // The same two ports, but another connection.
            assert_eq!(
                find(SocketAddr::new("127.0.0.2".parse().expect("an address"), peer.port()), local),
                Peer::Unknown
            );
            drop(client);
            assert_eq!(find(peer, local), Peer::Unknown, "{listen}");
        }
        let remote = "192.0.2.1:40000".parse().expect("an address");
        assert_eq!(find(remote, "127.0.0.1:5051".parse().expect("an address")), Peer::Remote);
    }
}
