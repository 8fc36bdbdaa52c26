//! `tepui service run`: the scheduler of a service in the foreground, with its plans as they proceed.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use tepui_service::spec::ServiceSpec;
use tepui_service_shell::{
    Authentication, BrowserPolicy, ClientTls, End, EtcdAddress, Options, Reload, RunningService, StoreAt, Tls,
};

use super::super::{Cluster, Signals, block_on};
use super::progress;
use super::settings;
use super::source::{Source, environment};
use crate::flags::both::LoggingFlags;
use crate::flags::{access, tls::TlsFlags, value};
use crate::{logging, output, terminal};

/// Less cannot be distinguished from a slow network.
const LEADER_LEASE_MIN: Duration = Duration::from_secs(1);

#[derive(Args)]
#[command(rename_all = "snake_case")]
pub struct RunCommand {
    #[command(flatten)]
    source: Source,
    /// Masters, `host:port` each, or `etcd://host:port/prefix` [default: --master].
    #[arg(value_name = "MASTER")]
    masters: Vec<String>,
    /// Directory of the scheduler's records [default: ~/.local/state/tepui/services/NAME].
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// Records in etcd, for several schedulers of which one is active: `etcd://host:port/prefix`.
    #[arg(long, value_name = "URL", conflicts_with = "work_dir")]
    store: Option<String>,
    /// CA certificates for `etcds://` addresses (PEM).
    #[arg(long, value_name = "FILE")]
    store_ca: Option<PathBuf>,
    /// Time after which a silent active scheduler is replaced.
    #[arg(long, value_parser = value::duration, default_value = "10secs")]
    leader_lease: Duration,
    /// Deploy again after an uninstallation; FRAMEWORK is the ID of the uninstalled framework.
    #[arg(long, value_name = "FRAMEWORK")]
    reinstall: Option<String>,
    /// Role of the service [default: NAME-role].
    #[arg(long)]
    role: Option<String>,
    /// Address of the HTTP API [default: 127.0.0.1].
    #[arg(long)]
    ip: Option<IpAddr>,
    /// Port of the HTTP API; 0 is any free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Name or address under which tasks and operators reach the HTTP API [default: its address].
    #[arg(long)]
    hostname: Option<String>,
    /// Credentials of operators, a JSON file as for the master; the HTTP API requires authentication.
    #[arg(long, value_name = "FILE")]
    api_credentials: Option<PathBuf>,
    /// Certificate of the HTTP API with its chain (PEM); enables TLS.
    #[arg(long, value_name = "FILE", requires = "api_tls_key")]
    api_tls_cert: Option<PathBuf>,
    /// Private key of --api_tls_cert (PEM).
    #[arg(long, value_name = "FILE", requires = "api_tls_cert")]
    api_tls_key: Option<PathBuf>,
    /// Permit the HTTP API on a non-loopback address without TLS or authentication, and uploads of specs without
    /// authentication.
    #[arg(long)]
    allow_insecure: bool,
    /// Additional values of the HTTP `Host` header, by comma; `*` is any.
    #[arg(long)]
    allowed_hosts: Option<String>,
    #[command(flatten)]
    logging: LoggingFlags,
}

impl RunCommand {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        let Some(spec) = self.source.read()? else { return Ok(ExitCode::FAILURE) };
        let name = spec.name.clone();
        let is_drawn = terminal::is_terminal(std::io::stdout());
        // Lines of the log would be written over the plans.
        let quiet = self.logging.quiet || is_drawn;
        let _logging = logging::start(&LoggingFlags { quiet, ..self.logging.clone() }, "service")?;
        self.warn_of_readable_secrets();
        cluster.client()?; // Trusts the certificates of --tls_ca.
        let options = self.options(cluster, spec)?;
        tepui_shell_master::raise_open_files();
        block_on(async {
            let mut service = tepui_service_shell::run(options).await?;
            let mut signals = Signals::listen()?;
            output::notice(&format!("service {} listening on {}", output::printable(&name), service.url()));
            serve(&mut service, &mut signals, is_drawn).await;
            if let End::Uninstalled(framework) = service.stop().await? {
                let (name, framework) = (output::printable(&name), output::printable(&framework));
                output::notice(&format!("service {name} is uninstalled"));
                output::notice(&format!("to install it again, start it with --reinstall={framework}"));
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    fn options(&self, cluster: &Cluster, spec: ServiceSpec) -> Result<Options> {
        let ip = self.ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let tls = TlsFlags {
            tls_cert: self.api_tls_cert.clone(),
            tls_key: self.api_tls_key.clone(),
            tls_ca: None,
            tls_verify_clients: false,
            allow_insecure: self.allow_insecure,
        };
        tls.check_address(ip, self.api_credentials.is_some())?;
        let api_tls: Option<Tls> = tls.load()?;
        let hosts = self.allowed_hosts.as_deref().map(value::list).unwrap_or_default();
        let browsers = BrowserPolicy::new(&hosts, false).map_err(|why| anyhow!("--allowed_hosts: {why}"))?;
        let authentication: Option<Authentication> = match &self.api_credentials {
            Some(path) => Some(access::authentication("api_credentials", Some(path), true)?),
            None => None,
        };
        let mut config = settings::config(&spec.name, self.role.as_deref(), &environment())?;
        config.reinstall.clone_from(&self.reinstall);
        Ok(Options {
            config,
            store: self.store_at(&spec.name)?,
            etcd_tls: self.etcd_tls()?,
            reload: self.reload(&spec.name),
            masters: if self.masters.is_empty() { cluster.master.clone() } else { self.masters.join(",") },
            credential: cluster.credential()?,
            leader_lease: self.leader_lease,
            ip,
            port: self.port,
            hostname: self.hostname.clone(),
            authentication,
            browsers,
            tls: api_tls,
            allow_insecure: self.allow_insecure,
            spec,
        })
    }

    fn store_at(&self, service: &str) -> Result<StoreAt> {
        let folder = service.trim_matches('/').replace('/', "__");
        match (&self.store, &self.work_dir) {
            (Some(text), _) => {
                if self.leader_lease < LEADER_LEASE_MIN {
                    bail!("--leader_lease must be at least {LEADER_LEASE_MIN:?}");
                }
                let mut address: EtcdAddress = text.parse().map_err(|why| anyhow!("--store: {why}"))?;
                address.prefix = format!("{}/{folder}", address.prefix);
                Ok(StoreAt::Etcd(address))
            }
            (None, Some(directory)) => {
                let path = std::path::absolute(directory).context("--work_dir cannot be made absolute")?;
                Ok(StoreAt::WorkDir(path))
            }
            (None, None) => {
                let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
                let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
                let state = state.filter(|path| path.is_absolute()).or_else(home);
                let state = state.context("HOME is not set; give --work_dir")?;
                Ok(StoreAt::WorkDir(state.join("tepui/services").join(folder)))
            }
        }
    }

    fn etcd_tls(&self) -> Result<Option<ClientTls>> {
        let Some(ca) = &self.store_ca else { return Ok(None) };
        Ok(Some(ClientTls::load(ca, None).map_err(|why| anyhow!("--store_ca: {why}"))?))
    }

    /// The spec of the same files, read again, or one that a client sends.
    fn reload(&self, service: &str) -> Reload {
        let (source, service) = (self.source.clone(), service.to_owned());
        Reload::new(move |upload| {
            match upload.map_or_else(|| source.parse(), |sent| source.parse_upload(sent)) {
                Ok(Ok((spec, _))) if spec.name == service => Ok(spec),
                Ok(Ok((spec, _))) => {
                    Err(format!("the name of a service cannot change from {service:?} to {:?}", spec.name))
                }
                Ok(Err(report)) => Err(report.to_string()),
                Err(error) => Err(format!("{error:#}")),
            }
        })
    }

    fn warn_of_readable_secrets(&self) {
        let shown = [
            ("api_credentials", "credentials", &self.api_credentials),
            ("api_tls_key", "tls_key", &self.api_tls_key),
        ];
        let shown: Vec<(String, String)> = shown
            .iter()
            .filter_map(|(_, kind, path)| Some(((*kind).to_owned(), path.as_ref()?.display().to_string())))
            .collect();
        access::warn_of_readable_secrets(&shown);
    }
}

/// Shows plans until a signal comes or the scheduler ends.
async fn serve(service: &mut RunningService, signals: &mut Signals, is_drawn: bool) {
    let published = service.published();
    tokio::select! {
        () = signals.next() => (),
        () = service.ended() => (),
        () = progress::show(Arc::new(published), is_drawn) => (),
    }
}
