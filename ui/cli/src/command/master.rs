//! `tepui master`: starts a master from its flags and runs it until a signal.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tepui_shell_master::{
    Access, Authorizer, Config, EtcdAddress, Logging, Options, ProcessOptions, RegistryAt, RunningMaster,
    Sorter, Throttle, parse_acls, raise_open_files,
};

use super::{Signals, block_on};
use crate::flags::master::MasterFlags;
use crate::flags::{access, value};
use crate::{logging, output};

/// A shorter lease could expire on a slow network.
const LEADER_LEASE_MIN: Duration = Duration::from_secs(1);

pub fn run(flags: MasterFlags, shown: Vec<(String, String)>) -> Result<ExitCode> {
    let logging = logging::start(&flags.logging, "master")?;
    access::warn_of_readable_secrets(&shown);
    // Every agent, framework and reader is a connection; a master starts no other programs that would inherit it.
    raise_open_files();
    block_on(async {
        let mut master = tepui_shell_master::run(options(&flags, shown, logging)?).await?;
        // Before the address is announced, but not earlier: a slow start can be interrupted.
        let mut signals = Signals::listen()?;
        let scheme = if flags.tls.tls_cert.is_some() { "https" } else { "http" };
        output::notice(&format!("master listening on {scheme}://{}", master.address()));
        serve(&mut master, &mut signals).await;
        master.stop().await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Waits for a signal or for the master to exit.
async fn serve(master: &mut RunningMaster, signals: &mut Signals) {
    tokio::select! {
        () = signals.next() => (),
        () = master.ended() => (),
    }
}

/// What the master is started with.
fn options(flags: &MasterFlags, shown: Vec<(String, String)>, logging: Logging) -> Result<Options> {
    let ip = flags.address.listen()?;
    let mut options = Options {
        registry: registry(flags)?,
        process: ProcessOptions { flags: shown, logging, ..process_options(flags, ip)? },
        leader_lease: flags.leader_lease,
        cluster: flags.cluster.clone(),
        whitelist: flags.whitelist.as_deref().and_then(whitelist),
        publish_per_framework_metrics: flags.publish_per_framework_metrics,
        ..Options::default()
    };
    options.access = access(flags)?;
    flags.tls.check_address(ip, options.access.authenticates_all_realms())?;
    options.process.tls = flags.tls.load()?;
    options.process.browsers = flags.browsers.policy()?;
    let config = &mut options.config;
    if let Some(text) = &flags.acls {
        let acls =
            parse_acls(&access::json_or_file("acls", text)?).map_err(|reason| anyhow!("--acls: {reason}"))?;
        config.authorizer = Authorizer::new(Some(acls));
    }
    config.roles = flags.roles.as_deref().map(value::list);
    config.weights = flags
        .weights
        .as_deref()
        .map(value::weights)
        .transpose()
        .map_err(|reason| anyhow!("--weights: {reason}"))?
        .unwrap_or_default();
    config.require_agent_domain = flags.require_agent_domain;
    config.root_submissions = flags.root_submissions;
    config.offer_timeout = flags.offer_timeout;
    config.allocation_interval = flags.allocation_interval;
    config.min_allocatable_resources = flags.min_allocatable_resources.clone();
    config.fair_sharing_excluded_resource_names =
        flags.fair_sharing_excluded_resource_names.as_deref().map(value::list).unwrap_or_default();
    config.filter_gpu_resources = flags.filter_gpu_resources;
    config.best_effort_tasks = flags.best_effort_tasks;
    config.task_group_limits = flags.task_group_limits;
    config.role_sorter = sorter(&flags.role_sorter);
    config.framework_sorter = sorter(&flags.framework_sorter);
    config.allocator_agent_recovery_factor = flags.allocator_agent_recovery_factor;
    config.allocator_recovery_timeout = flags.allocator_recovery_timeout;
    config.allocation_slack = flags.allocation_slack;
    config.allocation_slack_opt_out =
        flags.allocation_slack_opt_out.as_deref().map(value::list).unwrap_or_default();
    config.agent_ping_timeout = flags.agent_ping_timeout;
    config.max_agent_ping_timeouts = flags.max_agent_ping_timeouts;
    config.agent_reregister_timeout = flags.agent_reregister_timeout;
    config.agent_removal_rate_limit = flags.agent_removal_rate_limit;
    config.recovery_agent_removal_limit = flags.recovery_agent_removal_limit;
    config.max_operator_event_stream_subscribers = flags.max_operator_event_stream_subscribers;
    config.registry_gc_interval = flags.registry_gc_interval;
    bound(flags, config);
    Ok(options)
}

fn process_options(flags: &MasterFlags, ip: IpAddr) -> Result<ProcessOptions> {
    Ok(ProcessOptions {
        ip,
        advertise_ip: flags.address.advertise_ip,
        advertise_port: flags.address.advertise_port,
        hostname: flags.address.name(ip),
        etcd_tls: flags.etcd.load(&flags.registry, &flags.tls)?,
        headroom: flags.disk.headroom()?,
        domain: flags.domain.as_deref().map(super::domain).transpose()?,
        external_log_file: flags.logging.external_log_file.clone(),
        own_log_file: flags.logging.own_file("master"),
        audit_log: flags.audit.file(),
        ..ProcessOptions::on_port(flags.port)
    })
}

/// How much the master remembers.
fn bound(flags: &MasterFlags, config: &mut Config) {
    config.limits = flags.limits.limits();
    config.max_completed_frameworks = flags.max_completed_frameworks;
    config.max_completed_tasks_per_framework = flags.max_completed_tasks_per_framework;
    config.max_unreachable_tasks_per_framework = flags.max_unreachable_tasks_per_framework;
    config.registry_max_agent_age = flags.registry_max_agent_age;
    config.registry_max_agent_count = flags.registry_max_agent_count;
}

/// Who must authenticate, and how often they may call.
fn access(flags: &MasterFlags) -> Result<Access> {
    access::only_basic("http_authenticators", flags.http_authenticators.as_deref())?;
    access::only_basic("http_framework_authenticators", flags.http_framework_authenticators.as_deref())?;
    let closed = [
        flags.authenticate_http_readonly,
        flags.authenticate_http_readwrite,
        flags.authenticate_http_frameworks,
        flags.authenticate_agents,
    ];
    let is_needed = closed.contains(&true);
    let throttle = match &flags.rate_limits {
        Some(text) => Throttle::parse(&access::json_or_file("rate_limits", text)?)
            .map_err(|reason| anyhow!("--rate_limits: {reason}"))?,
        None => Throttle::default(),
    };
    Ok(Access {
        authentication: access::authentication("credentials", flags.credentials.as_deref(), is_needed)?,
        readonly: flags.authenticate_http_readonly,
        readwrite: flags.authenticate_http_readwrite,
        frameworks: flags.authenticate_http_frameworks,
        agents: flags.authenticate_agents,
        throttle,
        firewall: access::firewall(flags.firewall_rules.as_deref())?,
    })
}

/// `*` is v1's old word for no whitelist.
fn whitelist(path: &Path) -> Option<PathBuf> {
    (path != Path::new("*")).then(|| access::local(path))
}

fn sorter(name: &str) -> Sorter {
    match name {
        "random" => Sorter::Random,
        _ => Sorter::Drf,
    }
}

fn registry(flags: &MasterFlags) -> Result<RegistryAt> {
    match (flags.registry.as_str(), &flags.work_dir) {
        ("in_memory", _) => Ok(RegistryAt::Memory),
        (etcd, _) if EtcdAddress::is_meant(etcd) => {
            let address = etcd.parse().map_err(|reason| anyhow!("--registry: {reason}"))?;
            if flags.leader_lease < LEADER_LEASE_MIN {
                bail!("--leader_lease must be at least {LEADER_LEASE_MIN:?}");
            }
            Ok(RegistryAt::Etcd(address))
        }
        (other, _) if other != "replicated_log" => {
            bail!(
                "--registry is replicated_log, in_memory or etcd://host:port/prefix, not {:?}",
                EtcdAddress::masked(other)
            )
        }
        (_, Some(work_dir)) => {
            let path = std::path::absolute(work_dir).context("--work_dir cannot be made absolute")?;
            Ok(RegistryAt::WorkDir(path))
        }
        (_, None) => {
            bail!("--work_dir is missing: name a directory for the registry, or use --registry=in_memory")
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: MasterFlags,
    }

    /// Each flag of the allocator and its value in the master's configuration.
    #[test]
    fn allocator_flags_set_the_master_config() {
        let flags = [
            "--registry=in_memory",
            "--ip=127.0.0.1",
            "--offer_timeout=5secs",
            "--allocation_interval=50ms",
            "--min_allocatable_resources=cpus:1|mem:64",
            "--fair_sharing_excluded_resource_names=gpus,disk",
            "--filter_gpu_resources=false",
            "--role_sorter=random",
            "--allocation_slack=false",
            "--allocation_slack_opt_out=web,ops",
        ];
        let line = Line::parse_from(["master"].into_iter().chain(flags));
        let config = options(&line.flags, Vec::new(), Logging::default()).unwrap().config;
        assert_eq!(config.offer_timeout, Some(Duration::from_secs(5)));
        assert_eq!(config.allocation_interval, Duration::from_millis(50));
        assert_eq!(config.min_allocatable_resources, "cpus:1|mem:64");
        assert_eq!(config.fair_sharing_excluded_resource_names, ["gpus", "disk"]);
        assert_eq!((config.role_sorter, config.framework_sorter), (Sorter::Random, Sorter::Drf));
        assert_eq!((config.filter_gpu_resources, config.allocation_slack), (false, false));
        assert_eq!(config.allocation_slack_opt_out, ["web", "ops"]);

        let line = Line::parse_from(["master", "--registry=in_memory", "--ip=127.0.0.1"]);
        let config = options(&line.flags, Vec::new(), Logging::default()).unwrap().config;
        assert!(config.allocation_slack && config.filter_gpu_resources && config.offer_timeout.is_none());
    }
}
