//! Which master to link with next: the ones that were named, in turn, or the one that another named as leader.

/// The masters of `--master`.
#[derive(Debug)]
pub(crate) struct Targets {
    named: Vec<String>,
    next: usize,
    /// Where a standby sent us; used once.
    leader: Option<String>,
}

impl Targets {
    /// `host:port`, several separated by commas.
    pub fn parse(text: &str) -> Result<Self, String> {
        let named: Vec<String> =
            text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(String::from).collect();
        if named.is_empty() {
            return Err("--master is missing: give it as host:port".to_owned());
        }
        if let Some(wrong) = named.iter().find(|one| !is_host_port(one)) {
            return Err(format!("--master: {wrong:?} is not of the form host:port"));
        }
        Ok(Self { named, next: 0, leader: None })
    }

    /// The next to try.
    pub fn take(&mut self) -> String {
        if let Some(leader) = self.leader.take() {
            return leader;
        }
        let target = self.named[self.next % self.named.len()].clone();
        self.next = self.next.wrapping_add(1);
        target
    }

    /// The link worked: a next one should begin with the same master.
    pub fn keep(&mut self, target: &str) {
        self.leader = Some(target.to_owned());
    }

    /// Follows a Location: `//host:port/path` or a full URL. False if it names no host.
    pub fn redirect(&mut self, location: &str) -> bool {
        let rest = location.split_once("//").map_or("", |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or_default();
        let found = is_host_port(host);
        if found {
            self.leader = Some(host.to_owned());
        }
        found
    }

    pub fn named(&self) -> &[String] {
        &self.named
    }
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
        let mut targets = Targets::parse("a:1, b:2,").unwrap();
        assert_eq!([targets.take(), targets.take(), targets.take()], ["a:1", "b:2", "a:1"]);
        assert!(targets.redirect("//c:3/master/api/v1/agent"));
        assert_eq!([targets.take(), targets.take()], ["c:3", "b:2"]);
        assert!(targets.redirect("http://d:4/x"));
        assert_eq!(targets.take(), "d:4");
        assert!(!targets.redirect("/relative"));
        targets.keep("b:2");
        assert_eq!(targets.take(), "b:2");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in ["", " , ", "host", "host:", "host:x", ":1", "zk://a:1/mesos", "h:99999", "h:0"] {
            assert!(Targets::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Targets::parse("[::1]:5050").is_ok());
    }
}
