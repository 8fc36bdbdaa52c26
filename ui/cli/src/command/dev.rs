//! `tepui dev`: a cluster in one process with a temporary directory. Agents that exit are restarted, as by a process
//! supervisor: a master shuts an agent down when maintenance of its machine starts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tepui_container::{CgroupOptions, isolation_of_host};
use tepui_shell_agent::{AgentEnd, RunningAgent};
use tepui_shell_master::{Logging, ProcessOptions, RegistryAt};
use tokio::sync::watch;

use super::{Signals, block_on};
use crate::flags::both::LoggingFlags;
use crate::{amount, logging, output};

/// The pause before an agent is restarted.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Start a cluster on this machine for development.
#[derive(Args)]
#[command(rename_all = "snake_case")]
pub struct Dev {
    /// Number of agents; the machine's resources are divided among them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    agents: u32,
    /// Port of the master.
    #[arg(long, default_value_t = 5050)]
    port: u16,
    /// Directory of all state [default: a temporary directory, removed on exit].
    #[arg(long)]
    work_dir: Option<PathBuf>,
    /// Resources of each agent [default: detected].
    #[arg(long)]
    resources: Option<String>,
    #[command(flatten)]
    logging: LoggingFlags,
}

impl Dev {
    pub fn run(self) -> Result<ExitCode> {
        let logging = logging::start(&self.logging(), "dev")?;
        super::raise_open_files();
        let folder = Folder::new(self.work_dir.clone())?;
        block_on(self.serve(&folder.path, logging))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Logs warnings only, unless flags or environment request more.
    fn logging(&self) -> LoggingFlags {
        let mut flags = self.logging.clone();
        if flags.logging_level == "INFO" {
            flags.logging_level = "WARNING".to_string();
        }
        flags
    }

    async fn serve(&self, folder: &Path, logging: Logging) -> Result<()> {
        // From here on, so that an early Ctrl-C also shuts down cleanly.
        let mut signals = Signals::listen()?;
        let options = tepui_shell_master::Options {
            process: self.process_options(self.port, &logging),
            registry: RegistryAt::WorkDir(folder.join("master")),
            cluster: Some("dev".to_string()),
            ..Default::default()
        };
        let master = tepui_shell_master::run(options).await.with_context(|| self.port_hint())?;
        let address = master.address().to_string();
        let (stop, stopping) = watch::channel(false);
        let mut agents = Vec::new();
        for index in 0..self.agents {
            let options = tepui_shell_agent::Options {
                process: self.process_options(0, &logging),
                ..self.agent_options(folder, index, &address)?
            };
            let agent = tepui_shell_agent::run(options.clone()).await;
            let agent = agent.with_context(|| format!("cannot start agent {index}"))?;
            // Its failure is returned on exit.
            let supervised = tokio::spawn(supervise(agent, options.clone(), stopping.clone()));
            agents.push((supervised, options));
        }
        output::notice(&format!(
            "Tepui runs at http://{address} with {}; Ctrl-C stops it and everything it started.",
            amount::count(self.agents.into(), "agent")
        ));
        output::notice(&format!("Try: {}tepui run -- echo hello", self.naming(&address)));
        signals.next().await;
        output::notice("ending");
        // That agents disconnect now is expected; faults are returned.
        tepui_log::close();
        let mut results: Vec<Result<()>> = Vec::new();
        stop.send_replace(true);
        for (supervised, options) in agents {
            results.push(supervised.await.unwrap_or_else(|err| Err(err.into())));
            end_containers(&options).await;
        }
        results.push(master.stop().await.map_err(Into::into));
        results.into_iter().collect()
    }

    fn process_options(&self, port: u16, logging: &Logging) -> ProcessOptions {
        ProcessOptions {
            logging: logging.clone(),
            external_log_file: self.logging.external_log_file.clone(),
            own_log_file: self.logging().own_file("dev"),
            ..ProcessOptions::on_port(port)
        }
    }

    fn agent_options(&self, folder: &Path, index: u32, master: &str) -> Result<tepui_shell_agent::Options> {
        let work_dir = folder.join(format!("agent-{index}"));
        let mut options = tepui_shell_agent::Options {
            master: master.to_string(),
            runtime_dir: work_dir.join("run"),
            program: std::env::current_exe().context("cannot find the path of this program")?,
            resources: self.resources.clone().or_else(|| self.share(folder, index)),
            fetcher_cache_dir: work_dir.join("fetch"),
            work_dir,
            cgroups: CgroupOptions {
                root: PathBuf::from(format!("tepui-dev-{}-{index}", std::process::id())),
                ..Default::default()
            },
            ..Default::default()
        };
        match isolation_of_host(&options.cgroups) {
            Ok(isolation) => options.isolation = isolation,
            Err(fault) => tracing::info!(reason = %fault, "tasks run without limits"),
        }
        options.config.registration_backoff_factor = std::time::Duration::ZERO;
        Ok(options)
    }

    /// The agent's part of the machine; none is named if one agent has it all.
    fn share(&self, folder: &Path, index: u32) -> Option<String> {
        (self.agents > 1).then(|| tepui_shell_agent::share_of_machine(index, self.agents, folder))
    }

    fn port_hint(&self) -> String {
        format!("cannot start a master on port {}; --port takes another one", self.port)
    }

    /// The setting that makes other commands use this cluster, unless it has the default address.
    fn naming(&self, address: &str) -> String {
        if self.port == 5050 { String::new() } else { format!("export TEPUI_MASTER={address}; ") }
    }
}

/// Ends when everything is to stop.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // Fails only if the sender is dropped, which also means stop.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Restarts an agent whenever it exits, until the cluster stops.
async fn supervise(
    mut agent: RunningAgent,
    mut options: tepui_shell_agent::Options,
    mut stopping: watch::Receiver<bool>,
) -> Result<()> {
    // Keep the port, which clients already use.
    options.process.port = agent.address().port();
    loop {
        let end = tokio::select! {
            end = agent.ended() => end,
            () = stopped(&mut stopping) => return Ok(agent.stop().await?),
        };
        let reason = match (agent.stop().await, end) {
            (Err(fault), _) => fault.to_string(),
            (Ok(()), Some(AgentEnd { message, .. })) => message,
            (Ok(()), None) => "it failed".to_owned(),
        };
        tracing::warn!(reason, "agent terminated, restarting it");
        agent = loop {
            tokio::select! {
                () = tokio::time::sleep(RESTART_PAUSE) => (),
                () = stopped(&mut stopping) => return Ok(()),
            }
            match tepui_shell_agent::run(options.clone()).await {
                Ok(agent) => break agent,
                Err(fault) => tracing::warn!(%fault, "cannot restart the agent"),
            }
        };
    }
}

/// The cluster's directory; removed on exit unless set by the user.
struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Folder {
    fn new(chosen: Option<PathBuf>) -> Result<Self> {
        let temporary = chosen.is_none();
        let path =
            chosen.unwrap_or_else(|| std::env::temp_dir().join(format!("tepui-dev-{}", std::process::id())));
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot create the directory {}", path.display()))?;
        let path = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
        Ok(Self { path, temporary })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            eprintln!("tepui dev: cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Containers survive their agent by design; those of a temporary cluster are killed on exit.
async fn end_containers(agent: &tepui_shell_agent::Options) {
    let options = tepui_container::Options {
        work_dir: agent.work_dir.clone(),
        runtime_dir: agent.runtime_dir.clone(),
        program: agent.program.clone(),
        switch_user: true,
        fetcher_cache_dir: agent.fetcher_cache_dir.clone(),
        fetcher_cache_size_bytes: agent.fetcher_cache_size_bytes,
        fetcher_stall_timeout: agent.fetcher_stall_timeout,
        fetcher_sandbox_bytes_max: agent.fetcher_sandbox_bytes_max,
        frameworks_home: None,
        launcher: agent.launcher,
        isolation: agent.isolation.clone(),
        isolators: agent.isolators.clone(),
        images: agent.images.clone(),
        docker_volumes: agent.docker_volumes.clone(),
        container_logger: agent.container_logger.clone(),
        mesos: agent.mesos,
        docker: agent.docker.clone(),
        cgroups: agent.cgroups.clone(),
    };
    match tepui_container::destroy_all(options).await {
        Ok(true) => {}
        Ok(false) => {
            eprintln!("tepui dev: some tasks did not end; they are below {}", agent.work_dir.display())
        }
        Err(error) => {
            eprintln!("tepui dev: cannot kill the tasks below {}: {error}", agent.work_dir.display())
        }
    }
}
