//! The runtime directory: the state of containers that outlive the agent, and nothing else.
//!
//! `<runtime_dir>/containers/<id>/{pid,status,cgroups,init,volumes,given,disk,moved,ending,docker,docker_end,stdio.sock}`,
//! nested in `containers/<id>` below their parent's. `pid` is written once, by the first claimant: the supervisor,
//! which thereby may start the command, or a restarted agent that found none and thereby forbids it. `status` is
//! written by the supervisor when the command has exited. `cgroups` is written before they are made and stays until
//! they are removed. `init` is the process that holds the container's namespaces, `volumes` are the persistent
//! volumes mounted in its sandbox, `given` are its resources that are measured in intervals, `disk` the last
//! measurement. `moved` means that the command writes to its files through the supervisor, `stdio.sock` accepts
//! attached clients. `ending` is written before the first process is stopped or killed. `docker` means that a Docker
//! engine has a container for this one. Absent: sandboxes, environments, secrets.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tepui_docker::OutOfMemory;
use tepui_types::{ContainerId, Volume};

use crate::cgroups::Cgroups;
use crate::host::beneath;
use crate::host::process::{self, Process};
use crate::plan::Plan;
use crate::usage::DiskUse;

const PID: &str = "pid";
const STATUS: &str = "status";
const CGROUPS: &str = "cgroups";
const INIT: &str = "init";
const VOLUMES: &str = "volumes";
const GIVEN: &str = "given";
const DISK: &str = "disk";
const MOVED: &str = "moved";
const ENDING: &str = "ending";
const DOCKER: &str = "docker";
const DOCKER_END: &str = "docker_end";
const CONTAINERS: &str = "containers";

/// As long as a status can be, as text.
const STATUS_CHARS: usize = 11;

/// The longest value of a container id, in bytes: each becomes a file name with room for a suffix.
const ID_BYTES_MAX: usize = 242;

/// The directory of all containers of one agent.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeDir {
    root: PathBuf,
}

/// The directory of one container.
#[derive(Clone, Debug)]
pub(crate) struct ContainerDir {
    path: PathBuf,
}

/// The content of `pid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Not written yet.
    None,
    /// This supervisor took the container; it may have ended since.
    Supervisor(Process),
    /// It never started and never will, or did before this machine was last started.
    Void,
}

/// The process that holds a container's namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Init {
    pub process: Process,
    /// Where the command began, if not in its sandbox as the host sees it.
    pub directory: Option<PathBuf>,
    /// Where the sandbox is seen, if not where the host sees it.
    pub sandbox: Option<PathBuf>,
    /// The root file system of the task, if its executor stays outside of it; `directory` is inside.
    #[serde(default)]
    pub root: Option<PathBuf>,
}

impl Init {
    pub fn new(process: Process, plan: &Plan) -> Init {
        let root = plan.rootfs.clone().filter(|_| plan.stays_outside);
        let sandbox = plan.sandbox_inside().map(|sandbox| match &root {
            Some(root) => root.join(sandbox.strip_prefix("/").unwrap_or(&sandbox)),
            None => sandbox,
        });
        Init { process, directory: plan.working_directory.clone(), sandbox, root }
    }
}

/// What the container of a Docker engine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InDocker {
    /// It runs a task, whose executor is outside.
    pub of_task: bool,
    /// The first process in it, once it runs.
    #[serde(default)]
    pub process: Option<Process>,
    /// The OOM score of its processes while they use no more memory than requested. Set for those that may use more.
    #[serde(default)]
    pub oom_score_adj: Option<i32>,
}

/// The resources of a container that are measured in intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WatchedResources {
    /// Paths with the bytes they may hold.
    pub disk: Vec<(PathBuf, u64)>,
    /// The same of disks of their own: measured only.
    #[serde(default)]
    pub whole_disks: Vec<(PathBuf, u64)>,
    /// From and to, both included.
    pub ports: Vec<(u16, u16)>,
}

/// A persistent volume that is mounted in a container's sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mounted {
    pub source: String,
    pub target: String,
    pub read_only: bool,
}

impl From<&Volume> for Mounted {
    fn from(volume: &Volume) -> Mounted {
        let (source, target) = (volume.source.clone(), volume.target.clone());
        Mounted { source, target, read_only: volume.read_only }
    }
}

impl RuntimeDir {
    pub fn open(root: &Path) -> io::Result<RuntimeDir> {
        let containers = root.join(CONTAINERS);
        std::fs::create_dir_all(&containers)?;
        // Sockets, and what containers were given.
        std::fs::set_permissions(&containers, PermissionsExt::from_mode(0o700))?;
        Ok(RuntimeDir { root: root.to_owned() })
    }

    pub fn container(&self, id: &ContainerId) -> ContainerDir {
        ContainerDir { path: self.root.join(below(id)) }
    }

    /// The container whose directory a path is.
    pub fn id_of(&self, path: &Path) -> Option<ContainerId> {
        let mut words = path.strip_prefix(&self.root).ok()?.iter();
        let mut id: Option<ContainerId> = None;
        while let Some(word) = words.next() {
            let value = words.next().filter(|_| word == CONTAINERS)?.to_str()?;
            id = Some(id.map_or_else(|| ContainerId::root(value), |parent| parent.child(value)));
        }
        id.filter(is_valid)
    }

    /// Every container that has a directory, parents before their children.
    pub fn list(&self) -> io::Result<Vec<ContainerId>> {
        list(&self.root)
    }

    /// Removes the directories of a container and of those nested in it.
    pub fn remove(&self, id: &ContainerId) -> io::Result<()> {
        beneath::remove_tree(&self.root, &below(id))
    }
}

impl ContainerDir {
    pub fn at(path: &Path) -> ContainerDir {
        ContainerDir { path: path.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps that the supervisor stands between the command and its output.
    pub fn write_moved(&self) -> io::Result<()> {
        std::fs::write(self.path.join(MOVED), "")
    }

    /// Whether the supervisor may report after the command's exit.
    pub fn is_moved(&self) -> bool {
        self.path.join(MOVED).exists()
    }

    /// Records that the container is about to be destroyed: the next agent has to continue.
    pub fn write_ending(&self) -> io::Result<()> {
        std::fs::write(self.path.join(ENDING), "")
    }

    /// Whether its destruction has begun: its processes may be stopped.
    pub fn is_ending(&self) -> bool {
        self.path.join(ENDING).exists()
    }

    /// Keeps that a Docker engine is about to have a container for this one.
    pub fn write_docker(&self, docker: InDocker) -> io::Result<()> {
        let draft = self.path.join(format!("{DOCKER}.draft"));
        std::fs::write(&draft, serde_json::to_vec(&docker)?)?;
        std::fs::rename(&draft, self.path.join(DOCKER))
    }

    /// Of the engine's container; none for those that are not for an engine.
    pub fn docker(&self) -> Option<InDocker> {
        serde_json::from_slice(&std::fs::read(self.path.join(DOCKER)).ok()?).ok()
    }

    /// The file with the reason of a termination in an engine, in addition to the exit status.
    pub fn docker_end_path(&self) -> PathBuf {
        self.path.join(DOCKER_END)
    }

    pub fn docker_end(&self) -> Option<OutOfMemory> {
        serde_json::from_slice(&std::fs::read(self.docker_end_path()).ok()?).ok()
    }

    pub fn make(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.path)
    }

    /// Whether anything was ever written about the container.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Claims the container for `by`, for good. False if it was claimed before.
    pub fn claim(&self, by: Option<Process>) -> io::Result<bool> {
        let text = match by {
            Some(process) => format!("{} {} {}\n", process.pid, process.start_ticks, process::boot_id()),
            None => String::from("0 0 -\n"),
        };
        let draft = self.path.join(format!("{PID}.{}", std::process::id()));
        std::fs::write(&draft, text)?;
        // A link is made whole or not at all, and never over another file.
        let linked = std::fs::hard_link(&draft, self.path.join(PID));
        std::fs::remove_file(&draft)?;
        match linked {
            Ok(()) => Ok(true),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(err) => Err(err),
        }
    }

    pub fn claimed(&self) -> io::Result<Claim> {
        match std::fs::read_to_string(self.path.join(PID)) {
            Ok(text) => Ok(parse_claim(&text, process::boot_id())),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Claim::None),
            Err(err) => Err(err),
        }
    }

    /// Takes the room that the status needs: when the command has ended there may be none.
    pub fn reserve_status(&self) -> io::Result<()> {
        std::fs::write(self.status_draft(), [b' '; STATUS_CHARS])
    }

    /// Keeps the raw wait status of the command.
    pub fn write_status(&self, status: i32) -> io::Result<()> {
        let draft = self.status_draft();
        let mut file = std::fs::File::options().write(true).create(true).truncate(false).open(&draft)?;
        file.write_all(format!("{status:<STATUS_CHARS$}").as_bytes())?;
        std::fs::rename(&draft, self.path.join(STATUS))
    }

    fn status_draft(&self) -> PathBuf {
        self.path.join(format!("{STATUS}.draft"))
    }

    /// Keeps which cgroups the container is about to have.
    pub fn write_cgroups(&self, cgroups: &Cgroups) -> io::Result<()> {
        let draft = self.path.join(format!("{CGROUPS}.draft"));
        std::fs::write(&draft, serde_json::to_vec(cgroups)?)?;
        std::fs::rename(&draft, self.path.join(CGROUPS))
    }

    /// Those it was given; none under the posix launcher.
    pub fn cgroups(&self) -> Cgroups {
        let text = std::fs::read(self.path.join(CGROUPS)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Those of the container; if a Docker engine made it, those of its first process, as long as that lives.
    pub fn live_cgroups(&self) -> Cgroups {
        let Some(docker) = self.docker() else { return self.cgroups() };
        let Some(process) = docker.process.filter(|process| process.is_alive()) else {
            return Cgroups::default();
        };
        Cgroups { oom_score_adj: docker.oom_score_adj, ..Cgroups::of_live(process.pid) }
    }

    /// Records the process that holds the container's namespaces.
    pub fn write_init(&self, init: &Init) -> io::Result<()> {
        let draft = self.path.join(format!("{INIT}.draft"));
        std::fs::write(&draft, serde_json::to_vec(init)?)?;
        std::fs::rename(&draft, self.path.join(INIT))
    }

    /// The process that holds its namespaces; none if it has none of its own.
    pub fn init(&self) -> Option<Init> {
        serde_json::from_slice(&std::fs::read(self.path.join(INIT)).ok()?).ok()
    }

    /// Keeps which persistent volumes are mounted in the sandbox.
    pub fn write_volumes(&self, volumes: &[Mounted]) -> io::Result<()> {
        let draft = self.path.join(format!("{VOLUMES}.draft"));
        std::fs::write(&draft, serde_json::to_vec(volumes)?)?;
        std::fs::rename(&draft, self.path.join(VOLUMES))
    }

    /// Those that are mounted; none where volumes are links.
    pub fn volumes(&self) -> Vec<Mounted> {
        let text = std::fs::read(self.path.join(VOLUMES)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Records the resources that are measured in intervals.
    pub fn write_given(&self, given: &WatchedResources) -> io::Result<()> {
        let draft = self.path.join(format!("{GIVEN}.draft"));
        std::fs::write(&draft, serde_json::to_vec(given)?)?;
        std::fs::rename(&draft, self.path.join(GIVEN))
    }

    pub fn given(&self) -> WatchedResources {
        let text = std::fs::read(self.path.join(GIVEN)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Records the last measurement of its paths.
    pub fn write_disk(&self, uses: &[DiskUse]) -> io::Result<()> {
        let draft = self.path.join(format!("{DISK}.draft"));
        std::fs::write(&draft, serde_json::to_vec(uses)?)?;
        std::fs::rename(&draft, self.path.join(DISK))
    }

    /// Empty before the first measurement.
    pub fn disk(&self) -> Vec<DiskUse> {
        let text = std::fs::read(self.path.join(DISK)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub fn status(&self) -> Option<i32> {
        std::fs::read_to_string(self.path.join(STATUS)).ok()?.trim().parse().ok()
    }
}

/// Whether an id can be a file name. Dots separate the values of nested ids when they are written as one word.
pub(crate) fn is_valid(id: &ContainerId) -> bool {
    let value = id.value();
    let fits = !value.is_empty() && value.len() <= ID_BYTES_MAX;
    let plain = !value.chars().any(|c| c.is_ascii_control() || matches!(c, '/' | '\\' | '.' | ' '));
    fits && plain && id.parent().is_none_or(is_valid)
}

/// Every container that has a directory below `root`, parents before their children.
pub(crate) fn list(root: &Path) -> io::Result<Vec<ContainerId>> {
    let mut found = list_in(&root.join(CONTAINERS), None)?;
    let mut next = 0;
    while next < found.len() {
        let id = found[next].clone();
        found.extend(list_in(&root.join(below(&id)).join(CONTAINERS), Some(&id))?);
        next += 1;
    }
    Ok(found)
}

/// The directory of a container, below that of all.
pub(crate) fn below(id: &ContainerId) -> PathBuf {
    id.parent().map_or_else(PathBuf::new, below).join(CONTAINERS).join(id.value())
}

fn list_in(dir: &Path, parent: Option<&ContainerId>) -> io::Result<Vec<ContainerId>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(err),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // What is not named like a container is not ours to judge.
        let Some(name) = name.to_str().filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) else {
            continue;
        };
        let id = parent.map_or_else(|| ContainerId::root(name), |parent| parent.child(name));
        if is_valid(&id) {
            ids.push(id);
        }
    }
    ids.sort();
    Ok(ids)
}

fn parse_claim(text: &str, boot_id: &str) -> Claim {
    let mut words = text.split_whitespace();
    let pid = words.next().and_then(|word| word.parse().ok());
    let start_ticks = words.next().and_then(|word| word.parse().ok());
    match (pid, start_ticks) {
        (Some(pid), Some(start_ticks)) if pid > 0 && words.next().unwrap_or_default() == boot_id => {
            Claim::Supervisor(Process { pid, start_ticks })
        }
        _ => Claim::Void,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_claim_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = RuntimeDir::open(root.path()).expect("made").container(&ContainerId::root("a").child("b"));
        dir.make().expect("made");
        assert_eq!(dir.claimed().expect("readable"), Claim::None);
        assert!(dir.claim(None).expect("written"));
        assert!(!dir.claim(Process::this().ok()).expect("no error, too late"));
        assert_eq!(dir.claimed().expect("readable"), Claim::Void);
    }

    #[test]
    fn exit_status_is_written_on_a_full_disk() {
        let root = tempfile::tempdir().expect("a directory");
        let Some(disk) = tepui_facilities::Disk::mount(root.path(), 1) else { return };
        let dir = RuntimeDir::open(disk.path()).expect("made").container(&ContainerId::root("a"));
        dir.make().expect("made");
        dir.reserve_status().expect("there is room");
        assert_eq!(dir.status(), None);
        disk.fill();
        dir.write_status(i32::MIN).expect("the room is taken already");
        assert_eq!(dir.status(), Some(i32::MIN));
    }

    #[test]
    fn claim_of_an_earlier_boot_is_void() {
        let ours = Claim::Supervisor(Process { pid: 7, start_ticks: 8 });
        for (text, claim) in
            [("7 8 boot\n", ours), ("7 8 other\n", Claim::Void), ("0 0 -", Claim::Void), ("", Claim::Void)]
        {
            assert_eq!(parse_claim(text, "boot"), claim, "{text}");
        }
    }

    #[test]
    fn parents_are_listed_before_children() {
        let root = tempfile::tempdir().expect("a directory");
        let runtime = RuntimeDir::open(root.path()).expect("made");
        let (a, b) = (ContainerId::root("a"), ContainerId::root("b"));
        let ids = [a.clone(), b.clone(), b.child("x"), b.child("x").child("y")];
        for id in ids.iter().rev() {
            runtime.container(id).make().expect("made");
        }
        std::fs::write(root.path().join("containers/file"), "").expect("written");
        assert_eq!(runtime.list().expect("readable"), ids);
        for id in &ids {
            assert_eq!(runtime.id_of(runtime.container(id).path()).as_ref(), Some(id));
        }
        for path in ["containers", "x/a", "containers/a/b", "containers/a/containers/..", "../containers/a"] {
            assert_eq!(runtime.id_of(&root.path().join(path)), None, "{path}");
        }
        runtime.remove(&b).expect("removed");
        assert_eq!(runtime.list().expect("readable"), [a]);
    }

    #[test]
    fn container_ids_are_validated() {
        let root = ContainerId::root("0b7f-a_b:c");
        assert!(is_valid(&root) && is_valid(&root.child("x")));
        for bad in ["", ".", "..", "a/b", "a.b", "a b", "a\\b", "a\n", &"x".repeat(243)] {
            assert!(!is_valid(&ContainerId::root(bad)), "{bad}");
            assert!(!is_valid(&ContainerId::root(bad).child("x")), "{bad}");
        }
    }
}
