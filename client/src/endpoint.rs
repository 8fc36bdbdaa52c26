//! Where a master or an agent listens, and which of several masters to ask next.
//!
//! Pure: parsing of `host:port`, of agent pids, of redirects, and the order in which masters are tried.

use std::fmt;
use std::str::FromStr;

/// The default port of a master.
pub const MASTER_PORT: u16 = 5050;
/// The default port of etcd.
const ETCD_PORT: u16 = 2379;
/// A chain of redirects longer than this is an error: masters disagree about the leader.
pub const REDIRECTS_MAX: usize = 5;

/// An address with the prefix under which the API lives there (`/slave(1)`, `/master` or nothing).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
    pub prefix: String,
    /// Over TLS, by `https://`. If the process has trusted certificates ([`crate::tls`]), always.
    pub secure: bool,
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an address: {why}")]
pub struct AddressError {
    pub text: String,
    pub why: &'static str,
}

impl Endpoint {
    /// Reads `host`, `host:port`, `[v6]:port`, each with or without `http://` or `https://`; a trailing path becomes
    /// the prefix.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, AddressError> {
        let wrong = |why| AddressError { text: text.to_owned(), why };
        let rest = text.trim();
        let (rest, secure) = match (rest.strip_prefix("http://"), rest.strip_prefix("https://")) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => (rest, false),
        };
        if rest.contains("://") {
            return Err(wrong("only http:// and https:// are supported"));
        }
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((_, port)) if port.ends_with(']') => (authority, None),
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == '@') {
            return Err(wrong("expected host:port"));
        }
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong("the port is not a number below 65536"))?,
            None => default_port,
        };
        Ok(Self { host: host.to_owned(), port, prefix: path.trim_end_matches('/').to_owned(), secure })
    }

    /// Reads an agent pid such as `slave(1)@10.0.0.1:5051`; the part before `@` is the prefix of its paths.
    pub fn from_pid(pid: &str) -> Result<Self, AddressError> {
        let wrong = |why| AddressError { text: pid.to_owned(), why };
        let (id, address) = pid.split_once('@').ok_or_else(|| wrong("expected id@host:port"))?;
        let endpoint = Self::parse(address, 0)?;
        if endpoint.port == 0 {
            return Err(wrong("expected id@host:port"));
        }
        Ok(Self { prefix: format!("/{id}"), ..endpoint })
    }

    /// Follows the `Location` of a 307 that answered a request for `path`.
    pub fn redirected(&self, location: &str, path: &str) -> Result<Self, AddressError> {
        let mut target = Self::parse(location, self.port)?;
        // Without a scheme it is the one of the request.
        target.secure |= self.secure && location.starts_with("//");
        if let Some(prefix) = target.prefix.strip_suffix(path) {
            target.prefix = prefix.to_owned();
        }
        Ok(target)
    }

    /// `host:port`, with brackets around an IPv6 address.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.authority(), self.prefix)
    }
}

/// The masters of a cluster: tried in turn, with a redirect to the leader taking precedence until it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masters {
    known: Vec<Endpoint>,
    /// If the known ones are members of etcd.
    etcd: Option<Etcd>,
    next: usize,
    leader: Option<Endpoint>,
    redirects: usize,
}

/// The location of the leader's key in etcd, with credentials.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Etcd {
    pub prefix: String,
    /// User and password.
    pub login: Option<(String, String)>,
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Etcd({})", self.prefix)
    }
}

/// The text of an address without the password in it, if it has one.
pub fn masked(text: &str) -> String {
    let masked = || {
        let (scheme, rest) = text.split_once("://")?;
        let authority = rest.split('/').next().unwrap_or_default();
        let (login, hosts) = authority.rsplit_once('@')?;
        let user = login.split(':').next().unwrap_or_default();
        Some(format!("{scheme}://{user}:***@{hosts}{}", &rest[authority.len()..]))
    };
    masked().unwrap_or_else(|| text.to_owned())
}

impl FromStr for Masters {
    type Err = AddressError;

    /// Reads a comma-separated list of addresses, or `etcd://user:password@host:port,host:port/prefix`, without a
    /// login if etcd requires none, and as `etcds://…` over TLS.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (hosts, port, etcd) = match text.split_once("://") {
            Some((scheme @ ("etcd" | "etcds"), rest)) => {
                let why = "expected etcd://host:port/prefix";
                let (hosts, etcd) = etcd(rest).ok_or_else(|| AddressError { text: masked(text), why })?;
                (hosts, ETCD_PORT, Some((etcd, scheme == "etcds")))
            }
            _ => (text, MASTER_PORT, None),
        };
        let mut known =
            hosts.split(',').map(|one| Endpoint::parse(one, port)).collect::<Result<Vec<_>, _>>()?;
        if let Some((_, true)) = etcd {
            known.iter_mut().for_each(|member| member.secure = true);
        }
        let etcd = etcd.map(|(etcd, _)| etcd);
        Ok(Self { known, etcd, next: 0, leader: None, redirects: 0 })
    }
}

/// The hosts and the rest of what stands behind the scheme.
fn etcd(rest: &str) -> Option<(&str, Etcd)> {
    let (authority, prefix) = rest.split_once('/')?;
    let prefix = Some(prefix.trim_matches('/')).filter(|prefix| !prefix.is_empty())?.to_owned();
    let Some((login, hosts)) = authority.rsplit_once('@') else {
        return Some((authority, Etcd { prefix, login: None }));
    };
    let (user, password) = login.split_once(':')?;
    Some((hosts, Etcd { prefix, login: Some((decoded(user)?, decoded(password)?)) }))
}

/// `%XX` is a byte.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |digit: Option<u8>| char::from(digit?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

impl From<Endpoint> for Masters {
    fn from(endpoint: Endpoint) -> Self {
        Self { known: vec![endpoint], etcd: None, next: 0, leader: None, redirects: 0 }
    }
}

impl Masters {
    /// The next target.
    pub fn target(&self) -> &Endpoint {
        self.leader.as_ref().unwrap_or(&self.known[self.next])
    }

    /// If the target is a member of etcd that names the leader.
    pub(crate) fn unresolved(&self) -> Option<Etcd> {
        self.etcd.clone().filter(|_| self.leader.is_none())
    }

    /// etcd named the leader.
    pub(crate) fn found(&mut self, leader: Endpoint) {
        self.leader = Some(leader);
    }

    /// How many addresses were given.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// The target answered 307 to a request for `path`. False if the redirects lead nowhere; then the next one is due.
    pub fn redirected(&mut self, location: &str, path: &str) -> bool {
        let target = self.target().redirected(location, path);
        self.redirects += 1;
        match target {
            Ok(target) if self.redirects <= REDIRECTS_MAX => {
                self.leader = Some(target);
                true
            }
            Ok(_) | Err(_) => {
                self.failed();
                false
            }
        }
    }

    /// The target failed: drop the leader, continue with the next master.
    pub fn failed(&mut self) {
        self.leader = None;
        self.redirects = 0;
        self.next = (self.next + 1) % self.known.len();
    }

    /// The target took the call.
    pub fn succeeded(&mut self) {
        self.redirects = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(host: &str, port: u16, prefix: &str) -> Endpoint {
        Endpoint { host: host.into(), port, prefix: prefix.into(), secure: false }
    }

    #[test]
    fn endpoints_are_parsed() {
        let table = [
            ("localhost", endpoint("localhost", 5050, "")),
            ("10.0.0.1:15050", endpoint("10.0.0.1", 15050, "")),
            ("http://m:1/", endpoint("m", 1, "")),
            ("http://m:1/master", endpoint("m", 1, "/master")),
            ("[::1]:5051", endpoint("::1", 5051, "")),
            ("[::1]", endpoint("::1", 5050, "")),
            ("//leader:5050/master", endpoint("leader", 5050, "/master")),
        ];
        for (text, expected) in table {
            assert_eq!(Endpoint::parse(text, MASTER_PORT), Ok(expected), "{text}");
        }
        for text in ["", ":5050", "h:port", "zk://h:2181/mesos", "h:70000", "a b"] {
            assert!(Endpoint::parse(text, MASTER_PORT).is_err(), "{text}");
        }
        assert_eq!(endpoint("::1", 1, "").authority(), "[::1]:1");
    }

    #[test]
    fn libprocess_pids_are_endpoints() {
        assert_eq!(
            Endpoint::from_pid("slave(1)@127.0.0.1:5051"),
            Ok(endpoint("127.0.0.1", 5051, "/slave(1)"))
        );
        assert!(Endpoint::from_pid("127.0.0.1:5051").is_err());
        assert!(Endpoint::from_pid("slave(1)@127.0.0.1").is_err());
    }

    #[test]
    fn masters_are_tried_in_turn_and_redirects_followed() {
        let mut masters: Masters = "a,b:1".parse().expect("a list");
        assert_eq!(masters.target(), &endpoint("a", 5050, ""));
        masters.failed();
        assert_eq!(masters.target(), &endpoint("b", 1, ""));
        assert!(masters.redirected("//c:2/master/api/v1/scheduler", "/api/v1/scheduler"));
        assert_eq!(masters.target(), &endpoint("c", 2, "/master"));
        masters.failed();
        assert_eq!(masters.target(), &endpoint("a", 5050, ""));
    }

    #[test]
    fn etcd_is_queried_until_a_leader_is_found() {
        let mut masters: Masters = "etcd://a,b:1/tepui/x/".parse().expect("an address");
        assert_eq!(masters.target(), &endpoint("a", 2379, ""));
        assert_eq!(masters.unresolved(), Some(Etcd { prefix: "tepui/x".into(), login: None }));
        masters.found(endpoint("m", 5050, ""));
        assert_eq!((masters.target(), masters.unresolved()), (&endpoint("m", 5050, ""), None));
        masters.failed();
        assert_eq!(masters.target(), &endpoint("b", 1, ""));
        assert!(masters.unresolved().is_some());
        for wrong in ["etcd://a", "etcd://a/", "etcd:///p", "etcd://u@a/p", "etcd://u:%zz@a/p"] {
            assert!(wrong.parse::<Masters>().is_err(), "{wrong}");
        }
        let masters: Masters = "etcds://me:p%40ss@a,b/x".parse().expect("an address");
        let login = Some(("me".to_owned(), "p@ss".to_owned()));
        assert_eq!(masters.unresolved(), Some(Etcd { prefix: "x".into(), login }));
        assert!(masters.target().secure && !format!("{masters:?}").contains("p@ss"), "{masters:?}");
        assert_eq!(masked("etcds://me:p@a,b/x"), "etcds://me:***@a,b/x");
    }

    #[test]
    fn redirect_loops_are_limited() {
        let mut masters: Masters = "a".parse().expect("an address");
        let followed = (0..10).take_while(|_| masters.redirected("//a:5050", "/api/v1")).count();
        assert_eq!(followed, REDIRECTS_MAX);
        assert!(!masters.redirected("zk://a", "/api/v1"), "a redirect that we cannot follow");
    }
}
