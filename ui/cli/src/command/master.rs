//! `tepui master`: from flags to a running master, until it is told to end.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tepui_shell_master::{Options, RegistryAt, RunningMaster};

use super::{block_on, signal};
use crate::flags::master::MasterFlags;
use crate::flags::value;
use crate::{logging, output};

pub fn run(flags: MasterFlags, shown: Vec<(String, String)>) -> Result<ExitCode> {
    let logging = logging::start(&flags.logging);
    block_on(async {
        let mut master = tepui_shell_master::run(Options { logging, ..options(&flags, shown)? }).await?;
        output::notice(&format!("master listening on http://{}", master.address()));
        serve(&mut master).await?;
        master.stop().await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Waits for a signal, or for the master to end by itself.
async fn serve(master: &mut RunningMaster) -> Result<()> {
    tokio::select! {
        signal = signal() => signal,
        () = master.ended() => Ok(()),
    }
}

/// What the master is started with.
fn options(flags: &MasterFlags, shown: Vec<(String, String)>) -> Result<Options> {
    let mut options = Options {
        ip: flags.ip,
        port: flags.port,
        advertise_ip: flags.advertise_ip,
        advertise_port: flags.advertise_port,
        hostname: flags.hostname.clone().or_else(|| (!flags.hostname_lookup).then(|| flags.ip.to_string())),
        registry: registry(flags)?,
        cluster: flags.cluster.clone(),
        domain: flags.domain.as_deref().map(super::domain).transpose()?,
        external_log_file: flags.logging.external_log_file.clone(),
        flags: shown,
        publish_per_framework_metrics: flags.publish_per_framework_metrics,
        ..Options::default()
    };
    let config = &mut options.config;
    config.roles = flags.roles.as_deref().map(value::list);
    config.weights = flags
        .weights
        .as_deref()
        .map(value::weights)
        .transpose()
        .map_err(anyhow::Error::msg)?
        .unwrap_or_default();
    config.root_submissions = flags.root_submissions;
    config.offer_timeout = flags.offer_timeout;
    config.allocation_interval = flags.allocation_interval;
    config.min_allocatable_resources = flags.min_allocatable_resources.clone();
    config.fair_sharing_excluded_resource_names =
        flags.fair_sharing_excluded_resource_names.as_deref().map(value::list).unwrap_or_default();
    config.filter_gpu_resources = flags.filter_gpu_resources;
    config.allocation_slack = flags.allocation_slack;
    config.allocation_slack_opt_out =
        flags.allocation_slack_opt_out.as_deref().map(value::list).unwrap_or_default();
    config.agent_ping_timeout = flags.agent_ping_timeout;
    config.max_agent_ping_timeouts = flags.max_agent_ping_timeouts;
    config.agent_reregister_timeout = flags.agent_reregister_timeout;
    config.agent_removal_rate_limit = flags.agent_removal_rate_limit;
    config.max_completed_frameworks = flags.max_completed_frameworks;
    config.max_completed_tasks_per_framework = flags.max_completed_tasks_per_framework;
    config.max_unreachable_tasks_per_framework = flags.max_unreachable_tasks_per_framework;
    config.max_operator_event_stream_subscribers = flags.max_operator_event_stream_subscribers;
    config.registry_gc_interval = flags.registry_gc_interval;
    config.registry_max_agent_age = flags.registry_max_agent_age;
    config.registry_max_agent_count = flags.registry_max_agent_count;
    Ok(options)
}

fn registry(flags: &MasterFlags) -> Result<RegistryAt> {
    match (flags.registry.as_str(), &flags.work_dir) {
        ("in_memory", _) => Ok(RegistryAt::Memory),
        (_, Some(work_dir)) => {
            let path = std::path::absolute(work_dir).context("--work_dir cannot be made absolute")?;
            Ok(RegistryAt::WorkDir(path))
        }
        (_, None) => {
            bail!("--work_dir is missing: name a directory for the registry, or use --registry=in_memory")
        }
    }
}
