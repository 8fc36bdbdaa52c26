//! The user behind a connection from this machine, for agents that authenticate nobody.
//!
//! TCP has no peer credentials; the kernel's tables of sockets name the user of each. See
//! `docs/adr/0010-local-callers-without-authentication.md`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Tables of the sockets of this network namespace.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Another machine, or another network namespace.
    Remote,
    /// A process of this user.
    Local(u32),
    /// A process of this machine that has closed its end, so that nobody can tell its user.
    Unknown,
}

/// One socket of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    uid: u32,
    /// 0 if no process has it any more; then the user is not told either.
    inode: u64,
}

/// Finds the user of a peer that is connected to our `port`. Blocking.
pub(crate) fn find(peer: SocketAddr, port: u16) -> Peer {
    // An address of this machine can be bound here, others cannot.
    if UdpSocket::bind((peer.ip().to_canonical(), 0)).is_err() {
        return Peer::Remote;
    }
    let tables: io::Result<Vec<String>> = TABLES
        .iter()
        .map(std::fs::read_to_string)
        // A kernel without IPv6 has one table.
        .filter(|table| !table.as_ref().is_err_and(|err| err.kind() == io::ErrorKind::NotFound))
        .collect();
    match tables {
        Ok(tables) => user_of(&tables.concat(), peer, port),
        Err(err) => {
            tracing::warn!(%err, "cannot tell the user of a local caller");
            Peer::Unknown
        }
    }
}

/// The user of the socket at the other end of our connection with `peer`.
fn user_of(tables: &str, peer: SocketAddr, port: u16) -> Peer {
    let peer = canonical(peer);
    let sockets: Vec<Socket> = tables.lines().filter_map(parse).collect();
    let ours = |socket: &&Socket| socket.remote == peer && socket.local.port() == port;
    // Others may have the same local address towards another remote one.
    let theirs = |socket: &&Socket| {
        let is_other_end = |our: &Socket| our.local == socket.remote;
        socket.local == peer && sockets.iter().filter(ours).any(is_other_end)
    };
    let mut users = sockets.iter().filter(theirs).map(|socket| (socket.inode != 0).then_some(socket.uid));
    match (users.next(), users.next()) {
        (Some(Some(uid)), None) => Peer::Local(uid),
        _ => Peer::Unknown,
    }
}

/// A row: number, local and remote address, state, queues, timer, retransmissions, uid, timeout, inode.
fn parse(row: &str) -> Option<Socket> {
    let fields: Vec<&str> = row.split_whitespace().collect();
    Some(Socket {
        local: address(fields.get(1)?)?,
        remote: address(fields.get(2)?)?,
        uid: fields.get(7)?.parse().ok()?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// `0100007F:13BB`: words of 32 bits as the machine has them, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |index: usize| u32::from_str_radix(ip.get(index * 8..index * 8 + 8)?, 16).ok();
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?.to_ne_bytes()).into(),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?.to_ne_bytes());
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
}

/// IPv4 on a socket of IPv6 is IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// `local remote uid inode`, each address as `ip:port`.
    fn table(rows: &[(&str, &str, u32, u64)]) -> String {
        let shown = |text: &str| {
            let SocketAddr::V4(address) = text.parse().expect("an address") else { panic!("not v4") };
            format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
        };
        let row = |(local, remote, uid, inode): &(&str, &str, u32, u64)| {
            let (local, remote) = (shown(local), shown(remote));
            format!(
                "   0: {local} {remote} 01 00000000:00000000 00:00000000 00000000 {uid:5} 0 {inode} 1 0\n"
            )
        };
        format!("{HEAD}{}", rows.iter().map(row).collect::<String>())
    }

    #[test]
    fn the_user_is_that_of_the_other_end() {
        let (agent, peer, other) = ("127.0.0.1:5051", "127.0.0.1:40000", "127.0.0.1:5050");
        let ours = (agent, peer, 0, 7);
        for (rows, expected) in [
            (vec![ours, (peer, agent, 1000, 8)], Peer::Local(1000)),
            (vec![ours, (peer, agent, 0, 8)], Peer::Local(0)),
            // A closed socket is shown as root's.
            (vec![ours, (peer, agent, 0, 0)], Peer::Unknown),
            (vec![ours], Peer::Unknown),
            (vec![], Peer::Unknown),
            // The same port towards another program.
            (vec![ours, (peer, other, 0, 9)], Peer::Unknown),
            (vec![ours, (peer, other, 0, 9), (peer, agent, 1000, 8)], Peer::Local(1000)),
        ] {
            let found = user_of(&table(&rows), peer.parse().expect("an address"), 5051);
            assert_eq!(found, expected, "{rows:?}");
        }
    }

    #[test]
    fn real_connections_have_our_user() {
        let own = Peer::Local(nix::unistd::geteuid().as_raw());
        for listen in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let port = listener.local_addr().expect("bound").port();
            let to = if listen.starts_with("[::1]") { "::1" } else { "127.0.0.1" };
            let client = TcpStream::connect((to, port)).expect("connected");
            let (_server, peer) = listener.accept().expect("accepted");
            assert_eq!(find(peer, port), own, "{listen}");
            drop(client);
            assert_eq!(find(peer, port), Peer::Unknown, "{listen}");
        }
        assert_eq!(find("192.0.2.1:40000".parse().expect("an address"), 5051), Peer::Remote);
    }
}
