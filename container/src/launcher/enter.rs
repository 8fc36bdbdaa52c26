//! The last steps of a process before it becomes the command: its namespaces and cgroups, then the other parts of the
//! plan, then its user.
//!
//! Everything that needs memory is made before the fork; [`Entry::enter`] makes system calls only. A step that fails
//! fails the launch and is named: a command never runs less isolated than planned.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use nix::sched::CloneFlags;
use nix::sys::signal::SigSet;

use super::failure::{Failure, Pipe};
use super::mounts::Mounts;
use super::rights::Rights;
use super::system_calls::text;
use super::{InitSpec, reaper};
use crate::host::process::Process;
use crate::plan::{Join, Namespace, Plan};

/// What the child does, ready to be done.
pub(super) struct Entry {
    /// Open files that move the writing process.
    cgroups: Vec<File>,
    oom_score_adj: Option<String>,
    /// Namespaces to join, but for that of pids.
    join: Vec<(OwnedFd, CloneFlags)>,
    /// Namespaces to make, but for that of pids.
    own: CloneFlags,
    pids: Pids,
    mounts: Option<Mounts>,
    hostname: Option<String>,
    chroot: Option<CString>,
    directory: Option<CString>,
    rights: Rights,
    /// The command leads a session at the terminal that is its standard input.
    is_terminal: bool,
    needs_init: bool,
    status: Pipe,
    pub failure: Pipe,
}

/// Which pid namespace the command lives in.
enum Pids {
    /// The supervisor's.
    Same,
    Own,
    Joined(OwnedFd),
    /// Its own, below that of another container.
    OwnBelow(OwnedFd),
}

impl Entry {
    pub fn new(spec: &InitSpec, is_terminal: bool) -> io::Result<Entry> {
        let plan = &spec.plan;
        let cgroups = spec.cgroups.iter().map(|cgroup| open_door(cgroup)).collect::<io::Result<_>>();
        let mut join = plan.join.as_ref().map_or(Ok(Vec::new()), open_namespaces)?;
        let joined_pids = join.iter().position(|(_, flag)| *flag == CloneFlags::CLONE_NEWPID);
        let joined_pids = joined_pids.map(|index| join.remove(index).0);
        let has_mounts = plan.namespaces.contains(&Namespace::Mount);
        Ok(Entry {
            cgroups: cgroups.map_err(|err| io::Error::other(format!("cannot open its cgroups: {err}")))?,
            oom_score_adj: spec.oom_score_adj.map(|score| score.to_string()),
            join,
            own: own(plan),
            pids: match (joined_pids, plan.namespaces.contains(&Namespace::Pid)) {
                (None, false) => Pids::Same,
                (None, true) => Pids::Own,
                (Some(fd), false) => Pids::Joined(fd),
                (Some(fd), true) => Pids::OwnBelow(fd),
            },
            mounts: has_mounts.then(|| Mounts::new(plan)).transpose()?,
            hostname: plan.hostname.clone(),
            chroot: plan.chroot.as_deref().map(text).transpose()?,
            directory: plan
                .working_directory
                .as_deref()
                .filter(|_| !plan.stays_outside)
                .map(text)
                .transpose()?,
            rights: Rights::new(plan, spec.identity.as_ref()),
            is_terminal,
            needs_init: plan.needs_init(),
            status: Pipe::new()?,
            failure: Pipe::new()?,
        })
    }

    /// How many processes are between the supervisor and the command.
    pub fn inits(&self) -> usize {
        usize::from(self.needs_init) + usize::from(matches!(self.pids, Pids::OwnBelow(_)))
    }

    /// The pipe through which the init reports the command's exit.
    pub fn status(&self) -> io::Result<OwnedFd> {
        self.status.read.try_clone()
    }

    /// Starts `work`, which forks, so that its child is in the right pid namespace; later children are in ours again.
    pub fn with_pids<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match &self.pids {
            Pids::Same => return work(),
            Pids::Own => nix::sched::unshare(CloneFlags::CLONE_NEWPID)?,
            Pids::Joined(fd) | Pids::OwnBelow(fd) => nix::sched::setns(fd, CloneFlags::CLONE_NEWPID)?,
        }
        let worked = work();
        nix::sched::setns(File::open("/proc/self/ns/pid")?, CloneFlags::CLONE_NEWPID)?;
        worked
    }

    /// Nothing but system calls: it runs between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        self.do_enter().map_err(|failure| failure.write_to(self.failure.writer()))
    }

    fn do_enter(&self) -> Result<(), Failure> {
        let score = self.open_score()?;
        match self.needs_init {
            true => self.enter_behind_init(score)?,
            false => {
                self.enter_namespaces()?;
                self.set_score(score)?;
            }
        }
        self.stand_out()?;
        SigSet::empty().thread_set_mask().map_err(|err| Failure::at("signals")(err.into()))?;
        for cgroup in &self.cgroups {
            write(cgroup.as_raw_fd(), b"0").map_err(Failure::at("its cgroups"))?; // 0 is the writing process.
        }
        if let Some(directory) = &self.directory {
            // SAFETY: a path that ends with NUL. WHY: std's error path may allocate.
            let changed = unsafe { libc::chdir(directory.as_ptr()) };
            check(changed).map_err(Failure::at("its working directory"))?;
        }
        self.rights.take()
    }

    /// Leaves a process of ours in the namespaces and continues as its child.
    fn enter_behind_init(&self, score: Option<RawFd>) -> Result<(), Failure> {
        reaper::terminate_with_parent();
        if let Pids::OwnBelow(_) = self.pids {
            let split = nix::sched::unshare(CloneFlags::CLONE_NEWPID).map_err(io::Error::from);
            split.and_then(|()| reaper::fork(None)).map_err(Failure::at("the pid namespace"))?;
        }
        self.enter_namespaces()?;
        // The child inherits the score; the file is this process's.
        self.set_score(score)?;
        reaper::fork_with(Some(self.status.writer()), || {
            if let Some(score) = score {
                write(score, b"0").ok();
            }
        })
        .map_err(Failure::at("its init"))
    }

    /// Leads a session of its own at its terminal, or else a group of processes.
    fn stand_out(&self) -> Result<(), Failure> {
        if !self.is_terminal {
            // SAFETY: plain numbers. WHY: signals to a group of processes must not reach the init.
            return check(unsafe { libc::setpgid(0, 0) }).map_err(Failure::at("its process group"));
        }
        // SAFETY: the descriptor is standard input, which is open for as long as it is borrowed here.
        // WHY: std's own handle for it may allocate.
        let stdin = unsafe { BorrowedFd::borrow_raw(libc::STDIN_FILENO) };
        let led = rustix::process::setsid().and_then(|_| rustix::process::ioctl_tiocsctty(stdin));
        led.map_err(|err| Failure::at("its terminal")(err.into()))
    }

    fn enter_namespaces(&self) -> Result<(), Failure> {
        for (fd, flag) in &self.join {
            nix::sched::setns(fd, *flag).map_err(|err| Failure::at("the parent's namespaces")(err.into()))?;
        }
        self.mounts.as_ref().map_or(Ok(()), Mounts::gather)?;
        nix::sched::unshare(self.own).map_err(|err| Failure::at("its namespaces")(err.into()))?;
        if let Some(name) = &self.hostname {
            // SAFETY: the memory is the string's. WHY: the wrapper may allocate.
            let set = unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) };
            check(set).map_err(Failure::at("its host name"))?;
        }
        self.mounts.as_ref().map_or(Ok(()), Mounts::make)?;
        match &self.chroot {
            // SAFETY: a path that ends with NUL. WHY: std's error path may allocate.
            Some(root) => check(unsafe { libc::chroot(root.as_ptr()) }).map_err(Failure::at("its root")),
            None => Ok(()),
        }
    }

    /// Opened while the host's `/proc` is still there.
    fn open_score(&self) -> Result<Option<RawFd>, Failure> {
        if self.oom_score_adj.is_none() {
            return Ok(None);
        }
        // SAFETY: a constant string that ends with NUL. WHY: the file is that of this process, so not opened before.
        let file =
            unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
        check(file.min(0)).map_err(Failure::at("its OOM score"))?;
        Ok(Some(file))
    }

    fn set_score(&self, file: Option<RawFd>) -> Result<(), Failure> {
        match (file, &self.oom_score_adj) {
            (Some(file), Some(score)) => write(file, score.as_bytes()).map_err(Failure::at("its OOM score")),
            (None, _) | (_, None) => Ok(()),
        }
    }
}

/// The file that moves the writing process into a cgroup. A process with one thread, as ours are, may use `tasks` on
/// v1: `cgroup.procs` makes every fork and exit of the machine wait.
fn open_door(cgroup: &Path) -> io::Result<File> {
    let open = |name: &str| File::options().write(true).open(cgroup.join(name));
    match open("tasks") {
        Err(err) if err.kind() == io::ErrorKind::NotFound => open("cgroup.procs"),
        opened => opened,
    }
}

fn flag(namespace: Namespace) -> CloneFlags {
    match namespace {
        Namespace::Mount => CloneFlags::CLONE_NEWNS,
        Namespace::Pid => CloneFlags::CLONE_NEWPID,
        Namespace::Ipc => CloneFlags::CLONE_NEWIPC,
        Namespace::Uts => CloneFlags::CLONE_NEWUTS,
    }
}

fn own(plan: &Plan) -> CloneFlags {
    let own = plan.namespaces.iter().filter(|one| **one != Namespace::Pid);
    own.fold(CloneFlags::empty(), |flags, one| flags | flag(*one))
}

/// The mount namespace last: from then on paths mean something else.
fn open_namespaces(join: &Join) -> io::Result<Vec<(OwnedFd, CloneFlags)>> {
    let order = [Namespace::Pid, Namespace::Ipc, Namespace::Uts, Namespace::Mount];
    let mut opened = Vec::new();
    for one in order.into_iter().filter(|one| join.namespaces.contains(one)) {
        let name = match one {
            Namespace::Mount => "mnt",
            Namespace::Pid => "pid",
            Namespace::Ipc => "ipc",
            Namespace::Uts => "uts",
        };
        let file = File::open(format!("/proc/{}/ns/{name}", join.process.pid));
        let file = file
            .map_err(|err| io::Error::other(format!("cannot open the parent's {name} namespace: {err}")))?;
        opened.push((file.into(), flag(one)));
    }
    // Checked after opening: the pid may have been reused.
    match Process::is_alive(join.process) {
        true => Ok(opened),
        false => Err(io::Error::other("its parent container has terminated")),
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn write(file: RawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the memory is the slice's. WHY: std's error path may allocate.
    let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
