//! The identity of a machine in maintenance schedules.

use alloc::string::String;
use core::fmt;

use tepui_proto::mesos::v1::MachineID;

/// A machine by hostname, without regard to case, and address. Either may be unknown, but not both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine {
    pub hostname: String,
    pub ip: String,
}

impl Machine {
    pub fn new(hostname: &str, ip: &str) -> Self {
        Self { hostname: hostname.to_lowercase(), ip: ip.into() }
    }

    /// `hostname@ip`, as in a key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (hostname, ip) = text.rsplit_once('@')?;
        Some(Self { hostname: hostname.into(), ip: ip.into() })
    }
}

impl From<&MachineID> for Machine {
    fn from(id: &MachineID) -> Self {
        Self::new(id.hostname.as_deref().unwrap_or_default(), id.ip.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.hostname, self.ip)
    }
}
