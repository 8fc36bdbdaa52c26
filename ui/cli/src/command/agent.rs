//! `tepui agent`: starts an agent from its flags and runs it until a signal; with an id, shows that agent.

mod detail;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use tepui_container::{CgroupOptions, Isolation, Launcher};
use tepui_shell_agent::{
    Access, AgentEnd, Authentication, Authorizer, Config, Credential, JwtKey, Logging, Options,
    ProcessOptions, Recover, RunningAgent, parse_acls,
};
use tokio::signal::unix;

use super::{Cluster, Signals, block_on};
use crate::flags::agent::AgentFlags;
use crate::flags::{access, features, value};
use crate::{logging, output};

/// The longest list of certificates that fits into a variable, with room to spare; the kernel takes 128 KiB.
const TRUST_BYTES_MAX: usize = 64 * 1024;

/// The default of `--runtime_dir`.
const RUNTIME_DIR: &str = "/var/run/tepui";

/// Start an agent, or show one with ID.
#[derive(Args)]
#[command(override_usage = USAGE)]
pub struct Agent {
    /// Show this agent instead: its ID, a prefix or suffix of it, or its hostname.
    pub id: Option<String>,
    /// With ID: print the agent as JSON.
    #[arg(long, requires = "id")]
    json: bool,
    #[command(flatten)]
    flags: AgentFlags,
}

const USAGE: &str = "tepui agent --master=HOST:PORT --work_dir=DIR [FLAGS]\n       tepui agent ID [--master=HOST:PORT] [--json]";

impl Agent {
    pub fn run(self, mut shown: Vec<(String, String)>) -> Result<ExitCode> {
        match &self.id {
            Some(id) => detail::show(&Cluster::at(self.flags.master), id, self.json),
            None => {
                shown.retain(|(flag, _)| flag != "json");
                start(self.flags, shown)
            }
        }
    }
}

fn start(flags: AgentFlags, shown: Vec<(String, String)>) -> Result<ExitCode> {
    let logging = logging::start(&flags.logging, "agent")?;
    access::warn_of_readable_secrets(&shown);
    super::raise_open_files();
    block_on(async {
        let mut agent = tepui_shell_agent::run(options(&flags, shown, logging)?).await?;
        // Before the address is announced, but not earlier: a slow start can be interrupted.
        let signals = Signals::listen()?;
        let leave = unix::signal(unix::SignalKind::user_defined1()).context("cannot wait for signals")?;
        let scheme = if flags.tls.tls_cert.is_some() { "https" } else { "http" };
        output::notice(&format!("agent listening on {scheme}://{}", agent.address()));
        let end = serve(&mut agent, signals, leave).await;
        agent.stop().await?;
        match end {
            Some(AgentEnd { failed: true, message }) => bail!("{message}"),
            Some(AgentEnd { failed: false, message }) => tracing::info!("agent terminated: {message}"),
            None => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Waits for a signal or for the agent to exit. On SIGUSR1 the agent unregisters first.
async fn serve(agent: &mut RunningAgent, mut signals: Signals, mut leave: unix::Signal) -> Option<AgentEnd> {
    loop {
        tokio::select! {
            () = signals.next() => return None,
            end = agent.ended() => return end,
            Some(()) = leave.recv() => {
                tracing::info!("leaving the cluster: killing all tasks");
                agent.unregister().await;
            }
        }
    }
}

/// What the agent is started with.
fn options(flags: &AgentFlags, shown: Vec<(String, String)>, logging: Logging) -> Result<Options> {
    let work_dir = std::path::absolute(&flags.work_dir).context("--work_dir cannot be made absolute")?;
    let ip = flags.address.listen()?;
    let mut options = Options {
        master: flags.master.clone(),
        runtime_dir: runtime_dir(flags, &work_dir)?,
        program: std::env::current_exe().context("cannot find the path of this program")?,
        resources: flags.resources.clone(),
        default_role: flags.default_role.clone(),
        attributes: flags.attributes.clone(),
        process: ProcessOptions {
            ip,
            advertise_ip: flags.address.advertise_ip,
            advertise_port: flags.address.advertise_port,
            hostname: flags.address.name(ip),
            domain: flags.domain.as_deref().map(super::domain).transpose()?,
            external_log_file: flags.logging.external_log_file.clone(),
            own_log_file: flags.logging.own_file("agent"),
            audit_log: flags.audit.file(),
            flags: shown,
            logging,
            ..ProcessOptions::on_port(flags.port)
        },
        launcher: launcher(flags),
        isolation: Isolation::parse(value::list(&flags.isolation).iter().map(String::as_str))
            .with_context(|| format!("--isolation={} cannot be used", flags.isolation))?,
        cgroups: CgroupOptions {
            root: flags.cgroups_root.clone(),
            enable_cfs: flags.cgroups_enable_cfs,
            limit_swap: flags.cgroups_limit_swap,
            revocable_cpu_low_priority: flags.revocable_cpu_low_priority,
        },
        isolators: flags.isolators.options()?,
        container_logger: flags.logger.logger()?,
        http_heartbeat_interval: heartbeat_interval(flags.http_heartbeat_interval)?,
        check_agent_port_range_only: flags.isolators.check_agent_port_range_only,
        fetcher_cache_dir: flags.fetcher_cache_dir.clone().unwrap_or_else(|| work_dir.join("fetch")),
        fetcher_cache_size_bytes: flags.fetcher_cache_size,
        fetcher_stall_timeout: flags.fetcher_stall_timeout,
        fetcher_sandbox_bytes_max: flags.fetcher_max_size,
        frameworks_home: (!flags.frameworks_home.is_empty()).then(|| flags.frameworks_home.clone().into()),
        images: flags.images.options(&work_dir)?,
        image_gc: flags.images.gc()?,
        docker_volumes: flags.images.docker_volumes()?,
        disk_watch_interval: flags.disk_watch_interval,
        work_dir,
        access: access(flags)?,
        credential: credential(flags)?,
        ..Options::default()
    };
    flags.tls.check_address(ip, options.access.authenticates_all_realms())?;
    options.process.headroom = flags.disk.headroom()?;
    options.process.tls = flags.tls.load()?;
    options.process.etcd_tls = flags.etcd.load(&flags.master, &flags.tls)?;
    options.process.browsers = flags.browsers.policy()?;
    (options.mesos, options.docker) = flags.docker.options(flags.images.logins()?)?;
    configure(flags, &mut options.config)?;
    Ok(options)
}

/// What the machine decides by.
fn configure(flags: &AgentFlags, config: &mut Config) -> Result<()> {
    config.cgroups_enable_cfs = flags.cgroups_enable_cfs;
    config.best_effort_tasks = flags.best_effort_tasks;
    config.task_group_limits = flags.task_group_limits;
    config.recover = if flags.recover == "cleanup" { Recover::Cleanup } else { Recover::Reconnect };
    config.strict = flags.strict;
    config.reconfiguration_additive = flags.reconfiguration_policy == "additive";
    config.recovery_timeout = flags.recovery_timeout;
    config.executor_registration_timeout = flags.executor_registration_timeout;
    config.executor_reregistration_timeout = flags.executor_reregistration_timeout;
    config.executor_shutdown_grace_period = flags.executor_shutdown_grace_period;
    config.executor_kill_margin = flags.executor_kill_margin;
    config.docker_stop_timeout = flags.docker.docker_stop_timeout;
    config.executor_environment_variables = flags.executor_environment_variables.clone();
    config.default_container_info =
        flags.default_container_info.as_deref().map(features::default_container).transpose()?;
    if let Some(text) = &flags.agent_features {
        config.capabilities = features::capabilities(text, &config.capabilities)?;
    }
    config.registration_backoff_factor = flags.registration_backoff_factor;
    config.gc_delay = flags.gc_delay;
    config.gc_disk_headroom = headroom(flags.gc_disk_headroom)?;
    config.max_completed_executors_per_framework = flags.max_completed_executors_per_framework;
    config.switch_user = flags.switch_user;
    flags.oversubscription.set(config)?;
    flags.eviction.set(config)?;
    Ok(())
}

fn launcher(flags: &AgentFlags) -> Launcher {
    match flags.launcher.as_deref() {
        Some("posix") => Launcher::Posix,
        Some(_) => Launcher::Linux,
        None => Launcher::Auto,
    }
}

/// Authentication and authorization.
fn access(flags: &AgentFlags) -> Result<Access> {
    access::only_basic("http_authenticators", flags.http_authenticators.as_deref())?;
    let key = match &flags.jwt_secret_key {
        Some(path) => Some(Arc::new(JwtKey::new(&access::read("jwt_secret_key", path)?))),
        None if flags.authenticate_http_executors => {
            bail!("--jwt_secret_key is missing: --authenticate_http_executors needs a key for the tokens")
        }
        None => None,
    };
    let is_needed = flags.authenticate_http_readonly || flags.authenticate_http_readwrite;
    let credentials = access::credentials("http_credentials", flags.http_credentials.as_deref(), is_needed)?;
    let acls = match &flags.acls {
        Some(text) => {
            let text = access::json_or_file("acls", text)?;
            Some(parse_acls(&text).map_err(|reason| anyhow!("--acls: {reason}"))?)
        }
        None => None,
    };
    Ok(Access {
        authentication: Authentication::new(credentials, key.clone()),
        readonly: flags.authenticate_http_readonly,
        readwrite: flags.authenticate_http_readwrite,
        executors: flags.authenticate_http_executors,
        authorizer: Authorizer::new(acls),
        key,
        executors_trust: executors_trust(flags)?,
        firewall: access::firewall(flags.firewall_rules.as_deref())?,
    })
}

/// Executors connect to the agent over TLS and need its trust anchors.
///
/// The certificates are passed by value, because their file does not exist in another root filesystem. A bundle that is
/// too large for a variable is passed by path.
fn executors_trust(flags: &AgentFlags) -> Result<Option<String>> {
    let Some(cert) = &flags.tls.tls_cert else { return Ok(None) };
    // A self-signed certificate is its own trust anchor.
    let trusted = flags.tls.tls_ca.as_ref().unwrap_or(cert);
    let text = std::fs::read_to_string(trusted)
        .with_context(|| format!("--tls_ca: cannot read {}", trusted.display()))?;
    if let (true, Some(begin)) = (text.len() <= TRUST_BYTES_MAX, text.find("-----BEGIN")) {
        return Ok(Some(text[begin..].to_owned()));
    }
    let path = std::path::absolute(trusted).context("--tls_ca cannot be made absolute")?;
    Ok(Some(path.display().to_string()))
}

fn credential(flags: &AgentFlags) -> Result<Option<Credential>> {
    let Some(path) = &flags.credential else { return Ok(None) };
    let text = access::read("credential", path)?;
    let credential =
        Credential::parse(&text).map_err(|reason| anyhow!("--credential: {}: {reason}", path.display()))?;
    Ok(Some(credential))
}

/// The flag, else a directory for root's agents, else one below the work directory.
fn runtime_dir(flags: &AgentFlags, work_dir: &Path) -> Result<PathBuf> {
    let chosen = match &flags.runtime_dir {
        Some(path) => path.clone(),
        None if std::fs::create_dir_all(RUNTIME_DIR).is_ok() => {
            // Two agents on one machine must not take each other's containers for orphans.
            PathBuf::from(RUNTIME_DIR).join(format!("agent-{}", flags.port))
        }
        None => work_dir.join("run"),
    };
    std::path::absolute(chosen).context("--runtime_dir cannot be made absolute")
}

/// The interval must be positive: otherwise heartbeats would be sent without pause.
fn heartbeat_interval(interval: Duration) -> Result<Duration> {
    if interval.is_zero() {
        bail!("--http_heartbeat_interval must be positive");
    }
    Ok(interval)
}

fn headroom(value: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        bail!("--gc_disk_headroom={value} must be from 0.0 to 1.0")
    }
}
