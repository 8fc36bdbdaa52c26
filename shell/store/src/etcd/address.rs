//! `etcd://host:2379,host:2379/prefix`, over TLS as `etcds://…`; with `user:password@` before the hosts if etcd requires
//! authentication. Name and password may be percent-encoded.

use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// The default port of etcd.
const ETCD_PORT: u16 = 2379;

/// Where etcd listens and where in it a cluster lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAddress {
    /// `host:port` each.
    pub endpoints: Vec<String>,
    /// Has a leading and no trailing slash.
    pub prefix: String,
    /// Over TLS.
    pub is_secure: bool,
    pub login: Option<Login>,
}

/// What we show to etcd. Its `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl EtcdAddress {
    /// Whether a text means to be one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("etcd://") || text.starts_with("etcds://")
    }

    /// The text of an address, of etcd or not, without its password.
    pub fn masked(text: &str) -> String {
        let masked = || {
            let (scheme, rest) = text.split_once("://").filter(|_| Self::is_meant(text))?;
            let authority = rest.split('/').next().unwrap_or_default();
            let (login, hosts) = authority.rsplit_once('@')?;
            let user = login.split(':').next().unwrap_or_default();
            Some(format!("{scheme}://{user}:***@{hosts}{}", &rest[authority.len()..]))
        };
        masked().unwrap_or_else(|| text.to_owned())
    }

    pub(crate) fn key(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.prefix).into_bytes()
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({})", self.user)
    }
}

impl FromStr for EtcdAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("{:?} is not etcd://host:port,host:port/prefix: {why}", EtcdAddress::masked(text))
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let is_secure = match scheme {
            "etcd" => false,
            "etcds" => true,
            _ => return Err(wrong("it begins neither with etcd:// nor with etcds://")),
        };
        let (authority, prefix) = rest.split_once('/').ok_or_else(|| wrong("it has no prefix"))?;
        let prefix = prefix.trim_matches('/');
        if prefix.is_empty() {
            return Err(wrong("its prefix is empty; name the cluster"));
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((said, hosts)) => {
                let login = login(said).ok_or_else(|| wrong("expected user:password before the @"))?;
                (Some(login), hosts)
            }
            None => (None, authority),
        };
        let endpoints: Result<Vec<String>, String> = hosts
            .split(',')
            .map(|host| endpoint(host.trim()).ok_or_else(|| wrong("a host is wrong")))
            .collect();
        Ok(Self { endpoints: endpoints?, prefix: format!("/{prefix}"), is_secure, login })
    }
}

fn login(text: &str) -> Option<Login> {
    let decoded = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|part| part.into_owned());
    let (user, password) = text.split_once(':')?;
    Some(Login { user: decoded(user).filter(|user| !user.is_empty())?, password: decoded(password)? })
}

fn endpoint(text: &str) -> Option<String> {
    let plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "/@".contains(c));
    if !plain {
        return None;
    }
    match text.rsplit_once(':') {
        Some((_, port)) if port.ends_with(']') => Some(format!("{text}:{ETCD_PORT}")),
        Some((host, port)) => {
            let port: u16 = port.parse().ok()?;
            (!host.is_empty() && port > 0).then(|| text.to_owned())
        }
        None => Some(format!("{text}:{ETCD_PORT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_addresses_are_parsed() {
        let address: EtcdAddress = "etcd://a,b:1,[::1],[::1]:7/x/y/".parse().unwrap();
        assert_eq!(address.endpoints, ["a:2379", "b:1", "[::1]:2379", "[::1]:7"]);
        assert_eq!(address.prefix, "/x/y");
        assert_eq!(address.key("leader"), b"/x/y/leader");
        assert_eq!((address.is_secure, &address.login), (false, &None));
        let address: EtcdAddress = "etcds://me:a%2fb:c@a,b/x".parse().unwrap();
        let login = address.login.clone().unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), ("me", "a/b:c"));
        assert_eq!((address.is_secure, address.endpoints.len()), (true, 2));
        assert!(!format!("{address:?}").contains("a/b"), "{address:?}");
        for wrong in [
            "zk://a/b",
            "etcd://a",
            "etcd://a/",
            "etcd:///p",
            "etcd://a:x/p",
            "etcd://a,,b/p",
            "etcd://u@a/p",
            "etcd://:p@a/p",
        ] {
            assert!(wrong.parse::<EtcdAddress>().is_err(), "{wrong}");
        }
        let said = "etcd://u:hidden@a,,b/p".parse::<EtcdAddress>().unwrap_err();
        assert!(said.contains("u:***@a,,b") && !said.contains("hidden"), "{said}");
        for (text, masked) in
            [("etcds://u:p@h:1/x", "etcds://u:***@h:1/x"), ("etcd://h/x@y", "etcd://h/x@y"), ("h", "h")]
        {
            assert_eq!(EtcdAddress::masked(text), masked);
        }
    }
}
