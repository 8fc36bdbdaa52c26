//! `etcd://host:2379,host:2379/prefix`.

use std::str::FromStr;

/// The port of etcd when an address does not say.
const ETCD_PORT: u16 = 2379;

/// Where etcd listens and where in it a cluster lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAddress {
    /// `host:port` each.
    pub endpoints: Vec<String>,
    /// Begins and does not end with a slash.
    pub prefix: String,
}

impl EtcdAddress {
    /// Whether a text means to be one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("etcd://")
    }

    pub(crate) fn key(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.prefix).into_bytes()
    }
}

impl FromStr for EtcdAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} is not etcd://host:port,host:port/prefix: {why}");
        let rest = text.strip_prefix("etcd://").ok_or_else(|| wrong("it does not begin with etcd://"))?;
        let (hosts, prefix) = rest.split_once('/').ok_or_else(|| wrong("it has no prefix"))?;
        let prefix = prefix.trim_matches('/');
        if prefix.is_empty() {
            return Err(wrong("its prefix is empty; name the cluster"));
        }
        let endpoints: Result<Vec<String>, String> = hosts
            .split(',')
            .map(|host| endpoint(host.trim()).ok_or_else(|| wrong("a host is wrong")))
            .collect();
        Ok(Self { endpoints: endpoints?, prefix: format!("/{prefix}") })
    }
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
    fn addresses() {
        let address: EtcdAddress = "etcd://a,b:1,[::1],[::1]:7/x/y/".parse().unwrap();
        assert_eq!(address.endpoints, ["a:2379", "b:1", "[::1]:2379", "[::1]:7"]);
        assert_eq!(address.prefix, "/x/y");
        assert_eq!(address.key("leader"), b"/x/y/leader");
        for wrong in [
            "zk://a/b",
            "etcd://a",
            "etcd://a/",
            "etcd:///p",
            "etcd://a:x/p",
            "etcd://a,,b/p",
            "etcd://u@a/p",
        ] {
            assert!(wrong.parse::<EtcdAddress>().is_err(), "{wrong}");
        }
    }
}
