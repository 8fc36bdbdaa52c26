//! A real agent with every cgroup isolator of the machine, and containers without tasks on it.
//!
//! Containers outlive their agent; dropping this ends them. Needs root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tepui_client::operator::Client;
use tepui_client::shorthand::scalar;
use tepui_client::v1::agent::{Call, call};
use tepui_client::v1::{CommandInfo, ContainerID};
use tokio::task::JoinSet;

use crate::agent::{TASK_CPUS, TASK_MEM};
use crate::program::Program;

/// How long anything here may take; machines are shared and slow.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(20);

/// Names of the cgroup file systems, of both versions.
const CGROUP_KINDS: [&str; 2] = ["cgroup", "cgroup2"];

/// Whether this machine lets us make cgroups.
pub fn is_possible() -> bool {
    nix::unistd::geteuid().is_root() && !cgroup_mounts().is_empty()
}

/// The cluster: a master, and the agent that is looked at.
pub struct Isolated {
    pub agent: Program,
    pub master: Program,
    pub client: Client,
    cgroups_root: PathBuf,
    /// Where the programs keep their files.
    pub folder: tempfile::TempDir,
}

impl Isolated {
    /// With room for so many tasks. Containers without tasks need none.
    pub async fn start(slots: usize) -> Result<Self> {
        ensure!(is_possible(), "containers with cgroups need root and a mounted cgroup file system");
        let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
        let cgroups_root = PathBuf::from(folder.path().file_name().context("it has a name")?);
        let master = Program::master(folder.path(), &["--allocation_interval=100ms".to_owned()])?;
        let (cpus, mem) = (TASK_CPUS * slots as f64, TASK_MEM * slots as f64);
        let flags = [
            format!("--resources=cpus:{cpus:.1};mem:{mem};disk:10240;ports:[31000-32000]"),
            "--isolation=cgroups/all".to_owned(),
            "--launcher=linux".to_owned(),
            format!("--cgroups_root={}", cgroups_root.display()),
        ];
        let agent = Program::agent(folder.path(), 0, &master.address, &flags)?;
        let client = Client::new(&agent.address)?;
        let isolated = Self { agent, master, client, cgroups_root, folder };
        isolated.admitted().await?;
        Ok(isolated)
    }

    /// Waits until the agent serves calls about containers.
    pub async fn admitted(&self) -> Result<()> {
        let began = Instant::now();
        while self.client.get("/metrics/snapshot").await?["slave/registered"] != 1.0 {
            ensure!(began.elapsed() < PATIENCE, "the agent was not admitted within {PATIENCE:?}");
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Launches a container that runs a program; the time until it runs.
    pub async fn launch(&self, id: &str, program: &[&str]) -> Result<Duration> {
        launch(&self.client, id, program).await
    }

    /// Ends a container; the time until nothing of it is left.
    pub async fn destroy(&self, id: &str) -> Result<Duration> {
        destroy(&self.client, id).await
    }

    /// Launches or ends many, so many at once; the time all of them took.
    pub async fn many(&self, work: Work, ids: &[String], at_once: usize) -> Result<Duration> {
        let began = Instant::now();
        let mut running = JoinSet::new();
        for id in ids {
            if running.len() >= at_once {
                running.join_next().await.context("some run")???;
            }
            let (client, id) = (self.client.clone(), id.clone());
            running.spawn(async move {
                match work {
                    Work::Launch => launch(&client, &id, &SLEEP).await,
                    Work::Destroy => destroy(&client, &id).await,
                }
            });
        }
        while let Some(done) = running.join_next().await {
            done??;
        }
        Ok(began.elapsed())
    }

    /// The cgroups that those of containers are made in.
    pub fn roots(&self) -> Vec<PathBuf> {
        let all = cgroup_mounts().into_iter().map(|mount| mount.join(&self.cgroups_root));
        all.filter(|root| root.is_dir()).collect()
    }

    /// Waits for the end of a container that ends by itself.
    pub async fn wait(&self, id: &str) -> Result<()> {
        wait(&self.client, id).await
    }
}

/// What is done to many containers.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Launch,
    Destroy,
}

/// A program that does nothing until it is ended.
pub const SLEEP: [&str; 2] = ["/bin/sleep", "100000"];

async fn launch(client: &Client, id: &str, program: &[&str]) -> Result<Duration> {
    let command = CommandInfo {
        shell: Some(false),
        value: program.first().map(|path| (*path).to_owned()),
        arguments: program.iter().map(|word| (*word).to_owned()).collect(),
        ..Default::default()
    };
    let launch = call::LaunchContainer {
        container_id: container_id(id).into(),
        command: command.into(),
        resources: vec![scalar("cpus", 0.01), scalar("mem", 32.0)],
        ..Default::default()
    };
    let call = Call {
        r#type: Some(call::Type::LAUNCH_CONTAINER),
        launch_container: launch.into(),
        ..Default::default()
    };
    let began = Instant::now();
    client.agent(&call).await.with_context(|| format!("container {id} was not launched"))?;
    Ok(began.elapsed())
}

async fn destroy(client: &Client, id: &str) -> Result<Duration> {
    let kill = call::KillContainer { container_id: container_id(id).into(), ..Default::default() };
    let call =
        Call { r#type: Some(call::Type::KILL_CONTAINER), kill_container: kill.into(), ..Default::default() };
    let began = Instant::now();
    // Asked for before, so that the answer cannot be missed.
    let waiting = tokio::spawn({
        let (client, id) = (client.clone(), id.to_owned());
        async move { wait(&client, &id).await }
    });
    client.agent(&call).await.with_context(|| format!("container {id} was not ended"))?;
    // A wait after the termination is answered with "no such container": that is a termination as well.
    waiting.await?.ok();
    Ok(began.elapsed())
}

async fn wait(client: &Client, id: &str) -> Result<()> {
    let wait = call::WaitContainer { container_id: container_id(id).into(), ..Default::default() };
    let call =
        Call { r#type: Some(call::Type::WAIT_CONTAINER), wait_container: wait.into(), ..Default::default() };
    client.agent(&call).await?;
    Ok(())
}

fn container_id(id: &str) -> ContainerID {
    ContainerID { value: id.to_owned(), ..Default::default() }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        self.agent.kill();
        cgroup_mounts().iter().for_each(|mount| end_cgroup(&mount.join(&self.cgroups_root)));
    }
}

fn cgroup_mounts() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let path = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (path, kind) = (words.next()?, words.next()?);
        CGROUP_KINDS.contains(&kind).then(|| PathBuf::from(path))
    };
    mounts.lines().filter_map(path).collect()
}

/// Kills the processes of a cgroup and removes it with all below.
fn end_cgroup(cgroup: &Path) {
    for child in std::fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            end_cgroup(&child.path());
        }
    }
    let began = Instant::now();
    while std::fs::remove_dir(cgroup).is_err() && cgroup.exists() && began.elapsed() < PATIENCE {
        let processes = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
        for pid in processes.lines().filter_map(|line| line.parse().ok()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL); // It may have ended by itself.
        }
        std::thread::sleep(POLL);
    }
}

/// The same program without any container: the time from fork to its end.
pub fn bare(program: &[&str]) -> Result<Duration> {
    let (path, arguments) = program.split_first().context("there is a program")?;
    let began = Instant::now();
    let status = Command::new(path).args(arguments).status()?;
    ensure!(status.success(), "{path} failed");
    Ok(began.elapsed())
}
