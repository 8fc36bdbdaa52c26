//! A host for tests: directories, a containerizer, and its events one after the other.
#![allow(dead_code, clippy::unwrap_used)]

pub mod image;
pub mod kernel;
pub mod plugin;
pub mod registry;
pub mod server;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tepui_container::{CgroupOptions, Containerizer, Isolation, Launcher, Options};
use tepui_facilities::{Facility, available, patience, skip};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{
    ContainerEvent, ContainerId, ContainerOp, KnownContainer, LaunchSpec, LaunchStage, RecoveredContainer,
    Termination,
};
use tokio::sync::mpsc;

pub struct Host {
    pub containerizer: Containerizer,
    pub events: mpsc::Receiver<ContainerEvent>,
    leftovers: Leftovers,
    pub options: Options,
    pub dir: tempfile::TempDir,
}

/// Containers outlive their agent: those left by a test, most of all a failed one, are killed with its host.
struct Leftovers(Options);

impl Drop for Leftovers {
    fn drop(&mut self) {
        let options = self.0.clone();
        // The test's own runtime cannot be waited for in here.
        let ending = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(tepui_container::destroy_all(options))
        });
        match ending.join() {
            Ok(Ok(true)) => (),
            other => eprintln!("containers of a test may be left: {other:?}"),
        }
    }
}

pub fn options(dir: &Path) -> Options {
    Options {
        work_dir: dir.join("work"),
        runtime_dir: dir.join("run"),
        program: PathBuf::from(env!("CARGO_BIN_EXE_container-helper")),
        switch_user: true,
        fetcher_cache_dir: dir.join("fetch"),
        fetcher_cache_size_bytes: 1000,
        fetcher_stall_timeout: Duration::from_secs(20),
        fetcher_sandbox_bytes_max: 1 << 30,
        frameworks_home: None,
        launcher: Launcher::Posix,
        isolation: Isolation::default(),
        container_logger: tepui_container::ContainerLogger::Sandbox,
        images: Default::default(),
        docker_volumes: Default::default(),
        isolators: Default::default(),
        cgroups: CgroupOptions::default(),
        mesos: true,
        docker: None,
    }
}

pub fn exited(code: i32) -> Option<i32> {
    Some(code << 8)
}

fn sandbox_in(dir: &Path, id: &ContainerId) -> PathBuf {
    let parent = id.parent().map_or_else(|| dir.join("work"), |parent| sandbox_in(dir, parent));
    parent.join("containers").join(id.value())
}

/// A launch of a shell script on the host in `dir`.
pub fn spec_in(dir: &Path, id: &ContainerId, script: &str) -> LaunchSpec {
    LaunchSpec {
        id: id.clone(),
        command: pb::CommandInfo { value: Some(script.to_owned()), ..Default::default() },
        environment: BTreeMap::new(),
        secrets: Default::default(),
        sandbox: sandbox_in(dir, id).display().to_string(),
        latest_link: None,
        user: None,
        no_root: false,
        container: None,
        resources: Vec::new(),
        limits: BTreeMap::new(),
        volumes: Vec::new(),
        of_task: true,
        holds_tasks: true,
        task: None,
        is_session: false,
    }
}

impl Host {
    pub fn new() -> Host {
        Host::with(|_| ())
    }

    /// With the linux launcher and a cgroup root of its own. `None`: recorded as skipped.
    pub fn linux(isolation: &str) -> Option<Host> {
        Host::linux_with(isolation, |_| ())
    }

    pub fn linux_with(isolation: &str, change: impl FnOnce(&mut Options)) -> Option<Host> {
        let root = kernel::own_root();
        if let Err(why) = tepui_container::cgroups_usable(&root) {
            skip(Facility::Cgroups, &why.to_string());
            return None;
        }
        Some(Host::with(|options| {
            options.launcher = Launcher::Linux;
            options.isolation = Isolation::parse(isolation.split(',')).unwrap();
            options.cgroups.root = root;
            change(options);
        }))
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Host {
        let dir = tempfile::tempdir().unwrap();
        // Other users must reach their sandboxes.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let (sender, events) = mpsc::channel(100);
        let mut options = options(dir.path());
        change(&mut options);
        let containerizer = Containerizer::start(options.clone(), sender).unwrap();
        Host { containerizer, events, leftovers: Leftovers(options.clone()), options, dir }
    }

    /// A new agent over the same directories; the old one receives nothing any more.
    pub fn restart(self) -> Host {
        let (sender, events) = mpsc::channel(100);
        drop(self.containerizer);
        let containerizer = Containerizer::start(self.options.clone(), sender).unwrap();
        Host { containerizer, events, leftovers: self.leftovers, options: self.options, dir: self.dir }
    }

    pub fn work_dir(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub fn runtime(&self, id: &ContainerId) -> PathBuf {
        let parent = id.parent().map_or_else(|| self.dir.path().join("run"), |parent| self.runtime(parent));
        parent.join("containers").join(id.value())
    }

    pub fn sandbox(&self, id: &ContainerId) -> PathBuf {
        sandbox_in(self.dir.path(), id)
    }

    pub fn read(&self, id: &ContainerId, file: &str) -> String {
        std::fs::read_to_string(self.sandbox(id).join(file)).unwrap()
    }

    pub fn spec(&self, id: &ContainerId, script: &str) -> LaunchSpec {
        spec_in(self.dir.path(), id, script)
    }

    pub fn submit(&self, op: ContainerOp) {
        self.containerizer.submit(op);
    }

    pub async fn event(&mut self) -> ContainerEvent {
        tokio::time::timeout(patience(), self.events.recv())
            .await
            .expect("an event in time")
            .expect("an event")
    }

    /// Launches and returns the supervisor's pid.
    pub async fn launch(&mut self, spec: LaunchSpec) -> u32 {
        let id = spec.id.clone();
        self.submit(ContainerOp::Launch(Box::new(spec)));
        match self.event().await {
            ContainerEvent::Launched { id: launched, pid } if launched == id => pid,
            other => panic!("{other:?}"),
        }
    }

    pub async fn launch_script(&mut self, id: &ContainerId, script: &str) -> u32 {
        self.launch(self.spec(id, script)).await
    }

    pub async fn fail_to_launch(&mut self, spec: LaunchSpec) -> (LaunchStage, String) {
        self.submit(ContainerOp::Launch(Box::new(spec)));
        match self.event().await {
            ContainerEvent::LaunchFailed { stage, message, .. } => (stage, message),
            other => panic!("{other:?}"),
        }
    }

    pub async fn exit_of(&mut self, id: &ContainerId) -> Termination {
        match self.event().await {
            ContainerEvent::Exited { id: ended, termination } if ended == *id => termination,
            other => panic!("{other:?}"),
        }
    }

    /// Launches and waits for the end: the raw status.
    pub async fn run(&mut self, spec: LaunchSpec) -> Option<i32> {
        let id = spec.id.clone();
        self.launch(spec).await;
        self.exit_of(&id).await.status
    }

    pub async fn destroy(&mut self, id: &ContainerId) -> Termination {
        self.submit(ContainerOp::Destroy { id: id.clone() });
        self.exit_of(id).await
    }

    pub async fn recover(&mut self, known: &[&ContainerId]) -> Vec<RecoveredContainer> {
        let known = known.iter().map(|id| KnownContainer {
            id: (*id).clone(),
            sandbox: self.sandbox(id).display().to_string(),
            resources: Vec::new(),
            volumes: Vec::new(),
        });
        self.recover_known(known.collect()).await
    }

    pub async fn recover_known(&mut self, known: Vec<KnownContainer>) -> Vec<RecoveredContainer> {
        self.submit(ContainerOp::Recover { known });
        match self.event().await {
            ContainerEvent::Recovered { containers } => containers,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a file in the sandbox has a whole line, and returns it.
    pub async fn line(&self, id: &ContainerId, file: &str) -> String {
        let path = self.sandbox(id).join(file);
        until(|| {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.split_once('\n').map(|(line, _)| line.to_owned())
        })
        .await
    }
}

/// Runs the calling test again in a process that has file systems of its own, prepared by a script; true in there.
/// Without the rights for that the test is recorded as skipped.
pub fn with_own_mounts(test: &str, script: &str) -> bool {
    const MARK: &str = "TEPUI_TEST_OWN_MOUNTS";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    if available(&[Facility::Mounts]) {
        let status = std::process::Command::new("unshare")
            .args(["-m", "sh", "-c", &format!("{script} && exec \"$0\" --exact {test} --nocapture")])
            .arg(std::env::current_exe().unwrap())
            .env(MARK, "1")
            .status();
        assert!(status.unwrap().success());
    }
    false
}

/// Runs the calling test again in a process with one more variable, which is unique; true in there.
pub fn with_variable(test: &str, name: &str, value: &Path) -> bool {
    if std::env::var_os(name).as_deref() == Some(value.as_os_str()) {
        return true;
    }
    let again = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(name, value)
        .status();
    assert!(again.unwrap().success());
    false
}

/// Looks again and again until there is an answer.
pub async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(patience(), looking).await.expect("it comes true in time")
}

/// Whether a process lives; a zombie does not.
pub fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}
