//! Options of every program.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tepui_http::{
    BrowserPolicy, ClientTls, Handler, Listening, Server, ServerLimits, StreamLimits, Tls, advertised_ip,
};
use tepui_proto::mesos::v1 as pb;
use tepui_store::Headroom;

use crate::Flags;
use crate::fault::ProcessFault;
use crate::logging::Logging;

/// What each program is started with, besides its own options.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    pub ip: IpAddr,
    /// 0: any free one.
    pub port: u16,
    pub advertise_ip: Option<IpAddr>,
    pub advertise_port: Option<u16>,
    /// As shown to people and in redirects.
    pub hostname: Option<String>,
    pub domain: Option<pb::DomainInfo>,
    /// Disk space reserved for records.
    pub headroom: Headroom,
    /// A log file that another program writes; shown to operators.
    pub external_log_file: Option<PathBuf>,
    /// The log file that this process writes; shown if there is no other.
    pub own_log_file: Option<PathBuf>,
    /// A file that gets an entry for every call that changes something, and for rejected ones.
    pub audit_log: Option<PathBuf>,
    pub flags: Flags,
    /// The level of the log, which operators may change.
    pub logging: Logging,
    /// The certificate of this process; without one, plain HTTP.
    pub tls: Option<Tls>,
    /// Trusted certificates for an etcd over TLS.
    pub etcd_tls: Option<ClientTls>,
    pub streams: StreamLimits,
    pub server: ServerLimits,
    /// What requests of browsers may do; the program's own names are added.
    pub browsers: BrowserPolicy,
    /// Inputs that may wait for the machine; with more, their senders wait.
    pub mailbox_inputs_max: usize,
}

impl ProcessOptions {
    pub fn on_port(port: u16) -> Self {
        Self {
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port,
            advertise_ip: None,
            advertise_port: None,
            hostname: None,
            domain: None,
            headroom: Headroom::default(),
            external_log_file: None,
            own_log_file: None,
            audit_log: None,
            flags: Vec::new(),
            logging: Logging::default(),
            tls: None,
            etcd_tls: None,
            streams: StreamLimits::default(),
            server: ServerLimits::default(),
            browsers: BrowserPolicy::default(),
            mailbox_inputs_max: 4096,
        }
    }

    pub fn bind(&self) -> Result<Server, ProcessFault> {
        let address = SocketAddr::new(self.ip, self.port);
        Server::bind(address).map_err(|err| ProcessFault::Listen { address, err })
    }

    /// The address that peers use for a listener on `bound`.
    pub fn advertised(&self, bound: SocketAddr) -> SocketAddr {
        let ip = self.advertise_ip.unwrap_or_else(|| advertised_ip(bound.ip()));
        SocketAddr::new(ip, self.advertise_port.unwrap_or(bound.port()))
    }

    /// The name that people use for an advertised address. Names are not looked up: an unreachable name server must not
    /// keep a cluster from starting.
    pub fn advertised_hostname(&self, advertised: SocketAddr) -> String {
        match (&self.hostname, advertised.ip().is_loopback()) {
            (Some(name), _) => name.clone(),
            (None, true) => "localhost".to_owned(),
            (None, false) => advertised.ip().to_string(),
        }
    }

    /// Starts to answer requests. Browsers may use the program's own names.
    pub fn serve<H: Handler>(&self, server: Server, handler: Arc<H>) -> Listening {
        let browsers = self.browsers.clone();
        let browsers = browsers.with_own_names(self.hostname.as_deref(), self.advertise_ip, self.ip);
        server.serve(handler, self.server, browsers, self.tls.clone())
    }
}
