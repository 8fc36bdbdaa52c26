//! Which master to link with next: the ones that were named, in turn, or the one that another named as leader.

use std::time::Duration;

use tepui_http::ClientTls;
use tepui_program::leader_authority;
use tepui_store::etcd::{Etcd, EtcdAddress, EtcdTls};

/// Limit of an answer of one member of etcd.
const ETCD_PATIENCE: Duration = Duration::from_secs(2);

/// The masters of `--master`.
#[derive(Debug)]
pub(crate) struct Targets {
    /// None if etcd names the leader.
    named: Vec<String>,
    etcd: Option<Etcd>,
    next: usize,
    /// Where a standby sent us; used once.
    leader: Option<String>,
}

impl Targets {
    /// `host:port`, several separated by commas, or `etcd://host:port,host:port/prefix`. Inside a tokio runtime.
    pub fn parse(text: &str, etcd_tls: Option<ClientTls>) -> Result<Self, String> {
        if EtcdAddress::is_meant(text) {
            let address = text.parse().map_err(|why| format!("--master: {why}"))?;
            let etcd = Some(Etcd::new(
                address,
                ETCD_PATIENCE,
                etcd_tls.map(|tls| EtcdTls::new(move || tls.config())),
            ));
            return Ok(Self { named: Vec::new(), etcd, next: 0, leader: None });
        }
        let named: Vec<String> =
            text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(String::from).collect();
        if named.is_empty() {
            return Err("--master is missing: give it as host:port".to_owned());
        }
        if let Some(wrong) = named.iter().find(|one| !is_host_port(one)) {
            return Err(format!("--master: {wrong:?} is not of the form host:port"));
        }
        Ok(Self { named, etcd: None, next: 0, leader: None })
    }

    /// The next master to try, or the member of etcd that names it.
    pub fn take(&mut self) -> Next {
        if let Some(leader) = self.leader.take() {
            return Next::Master(leader);
        }
        if let Some(etcd) = &self.etcd {
            return Next::Ask(etcd.clone());
        }
        let target = self.named[self.next % self.named.len()].clone();
        self.next = self.next.wrapping_add(1);
        Next::Master(target)
    }

    /// The link worked: the next one begins with the same master, unless etcd names another.
    pub fn keep(&mut self, target: &str) {
        if self.etcd.is_none() {
            self.leader = Some(target.to_owned());
        }
    }

    /// Follows a Location: `//host:port/path` or a full URL. False if it names no host.
    pub fn redirect(&mut self, location: &str) -> bool {
        let found = authority(location);
        if let Some(host) = found {
            self.lead(host.to_owned());
        }
        found.is_some()
    }

    /// This one is tried next.
    pub fn lead(&mut self, leader: String) {
        self.leader = Some(leader);
    }

    pub fn named(&self) -> &[String] {
        &self.named
    }
}

/// Where to go next.
#[derive(Debug)]
pub(crate) enum Next {
    Master(String),
    Ask(Etcd),
}

/// A master to link with.
#[derive(Debug)]
pub(crate) struct Target {
    pub address: String,
    /// The MasterInfo in etcd, if that named it as the leader.
    named_by: Option<(Etcd, Vec<u8>)>,
}

impl Target {
    /// Ends when etcd names another leader, if it was etcd that named this one.
    pub async fn replaced(&self) {
        match &self.named_by {
            Some((etcd, said)) => etcd.leader_replaced(said).await,
            None => std::future::pending().await,
        }
    }
}

impl Next {
    /// The master.
    pub async fn resolve(self) -> Result<Target, String> {
        match self {
            Next::Master(address) => Ok(Target { address, named_by: None }),
            Next::Ask(etcd) => match etcd.leader().await {
                Ok(Some(said)) => {
                    let address = leader_authority(&said).ok_or("the leader has no address")?;
                    Ok(Target { address, named_by: Some((etcd, said)) })
                }
                Ok(None) => Err("no master leads".to_owned()),
                Err(fault) => Err(fault.to_string()),
            },
        }
    }
}

/// The host and port of a Location: `//host:port/path` or a full URL.
pub(crate) fn authority(location: &str) -> Option<&str> {
    let (_, rest) = location.split_once("//")?;
    rest.split('/').next().filter(|host| is_host_port(host))
}

fn is_host_port(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((host, port)) => {
            !host.is_empty() && !host.contains(['/', '@']) && port.parse::<u16>().is_ok_and(|port| port > 0)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_are_tried_in_turn_and_redirects_followed() {
        let mut targets = Targets::parse("a:1, b:2,", None).unwrap();
        let take = |targets: &mut Targets| match targets.take() {
            Next::Master(target) => target,
            Next::Ask(_) => "etcd".to_owned(),
        };
        assert_eq!([take(&mut targets), take(&mut targets), take(&mut targets)], ["a:1", "b:2", "a:1"]);
        assert!(targets.redirect("//c:3/master/api/v1/agent"));
        assert_eq!([take(&mut targets), take(&mut targets)], ["c:3", "b:2"]);
        assert!(targets.redirect("http://d:4/x"));
        assert_eq!(take(&mut targets), "d:4");
        assert!(!targets.redirect("/relative"));
        targets.keep("b:2");
        assert_eq!(take(&mut targets), "b:2");
    }

    #[test]
    fn invalid_master_addresses_are_rejected() {
        for wrong in ["", " , ", "host", "host:", "host:x", ":1", "zk://a:1/mesos", "h:99999", "h:0"] {
            assert!(Targets::parse(wrong, None).is_err(), "{wrong}");
        }
        assert!(Targets::parse("[::1]:5050", None).is_ok());
    }
}
