//! The supervisor: our own program, started again, one for each container.
//!
//! It leads a session of its own and is killed only by its pid: an agent that stops, crashes or is interrupted at its
//! terminal does not affect it. It claims the container, starts the command, passes signals on, reaps all processes
//! below it, writes the command's wait status, kills the processes that the command left behind, and exits. A fresh
//! process with one thread: until the fork of the command everything is ordinary code.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::WaitPidFlag;

use super::enter::Entry;
use super::{InitReport, InitSpec, failure, tree};
use crate::cgroups::shortage;
use crate::host::process::{self, Process};
use crate::host::{beneath, open_files};
use crate::runtime_dir::{ContainerDir, Init};
use crate::stdio::log::Log;
use crate::stdio::switchboard::{Ends, Switchboard};

/// Exit codes of a command that could not be run, as shells give them.
pub(super) const EXIT_NOT_RUNNABLE: i32 = 126;
pub(super) const EXIT_NOT_FOUND: i32 = 127;

/// Larger than most specs.
const SPEC_USUAL_BYTES: usize = 16 * 1024;

/// The files of a container, open before anything of it runs.
struct Prepared {
    this: Process,
    runtime: ContainerDir,
    /// Only if the command does not write to its files by itself.
    switchboard: Option<Switchboard>,
    /// Until the command has them.
    ends: Option<Ends>,
}

/// Supervises the container described on standard input. Must be the first action of the process.
pub(crate) fn supervise() -> io::Result<()> {
    stand_alone()?;
    let spec = read_spec()?;
    if let Some(files) = spec.open_files {
        open_files::set_soft(files)?;
    }
    let (mut prepared, entry) = match prepare(&spec) {
        Ok(Some(prepared)) => prepared,
        // A restarted agent gave the container up: it must not start.
        Ok(None) => return Ok(()),
        Err(err) => return report(&InitReport::Failed { message: err.to_string() }),
    };
    let started = match begin(&spec, &mut prepared, entry) {
        Ok(started) => started,
        Err(fault) => return report(&InitReport::Failed { message: fault.to_string() }),
    };
    // Without a reader the next agent finds the container by its claim.
    report(&InitReport::from(prepared.this)).ok();
    let null = File::options().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(null.as_fd())?;
    nix::unistd::dup2_stdout(null.as_fd())?;
    nix::unistd::dup2_stderr(null.as_fd())?;
    let status = match started {
        Started::Runs(running) => running.wait(prepared.switchboard.as_mut()),
        Started::Ended(status) => status,
    };
    // If it cannot be written the container counts as killed; its processes must end all the same.
    let written = prepared.runtime.write_status(status.into_raw());
    let ended = end_the_rest(prepared.this);
    if let Some(switchboard) = &mut prepared.switchboard {
        switchboard.finish();
    }
    ended.and(written)
}

/// Leaves the agent's session and its files behind, and turns all signals into things to be waited for.
fn stand_alone() -> io::Result<()> {
    // Only the leader of a process group cannot; then it is alone already.
    nix::unistd::setsid().ok();
    SigSet::all().thread_block()?;
    // SAFETY: no handler is installed, only the default restored.
    // WHY: an inherited "ignore" would make the kernel reap the command, and its status would be lost.
    unsafe { nix::sys::signal::signal(nix::sys::signal::SIGCHLD, nix::sys::signal::SigHandler::SigDfl)? };
    // SAFETY: plain numbers; the descriptors stay open in this process. Old kernels lack it: nothing is lost then.
    // WHY: what the agent itself inherited must not stay open for as long as the container lives.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(())
}

fn read_spec() -> io::Result<InitSpec> {
    let mut text = Vec::with_capacity(SPEC_USUAL_BYTES);
    io::stdin().read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn report(report: &InitReport) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(&serde_json::to_vec(report)?)?;
    out.flush()
}

/// Everything that can fail before the command is started. `None` if the launch was cancelled.
fn prepare(spec: &InitSpec) -> io::Result<Option<(Prepared, Entry)>> {
    let sandbox = beneath::open_dir(&spec.work_dir, &spec.sandbox)?;
    match &spec.directory {
        Some(other) => nix::unistd::fchdir(&beneath::open_dir(&spec.work_dir, other)?)?,
        None => nix::unistd::fchdir(&sandbox)?,
    }
    let (switchboard, ends) = open_stdio(spec, sandbox)?;
    let entry = Entry::new(spec, ends.is_terminal)?;
    if let Some(cgroup) = &spec.shortages_of {
        shortage::count(cgroup).ok(); // A kernel without such events: its use is not less limited.
    }
    let (this, runtime) = (Process::this()?, ContainerDir::at(&spec.runtime));
    match runtime.claim(Some(this)) {
        Ok(true) => {
            // Without room for it now there may be some when the command has ended.
            runtime.reserve_status().ok();
            Ok(Some((Prepared { this, runtime, switchboard, ends: Some(ends) }, entry)))
        }
        Ok(false) => Ok(None),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(err),
    }
}

/// The command's input and output: its files, or a switchboard in front of them.
fn open_stdio(spec: &InitSpec, sandbox: OwnedFd) -> io::Result<(Option<Switchboard>, Ends)> {
    let plan = &spec.stdio;
    let stdout = Log::open(sandbox.try_clone()?, "stdout", plan.stdout)?;
    let stderr = Log::open(sandbox, "stderr", plan.stderr)?;
    if plan.is_moved() {
        ContainerDir::at(&spec.runtime).write_moved()?;
        let (switchboard, ends) =
            Switchboard::open(plan.switchboard, &spec.runtime, [stdout, stderr], spec.identity.as_ref())?;
        return Ok((Some(switchboard), ends));
    }
    let ends = Ends {
        stdin: File::open("/dev/null")?.into(),
        stdout: stdout.file().try_clone()?.into(),
        stderr: stderr.file().try_clone()?.into(),
        is_terminal: false,
    };
    Ok((None, ends))
}

/// What became of the attempt to run the command.
enum Started {
    Runs(Running),
    /// It could not be executed, which is how it ended.
    Ended(ExitStatus),
}

/// A command that runs.
struct Running {
    /// The command, or the init in front of it.
    child: Child,
    /// The pipe through which the init, if there is one, reports the command's exit.
    status: Option<OwnedFd>,
}

/// Why a command was not started; one that could not be executed has ended.
#[derive(Debug, thiserror::Error)]
enum StartFault {
    #[error("it was started before")]
    StartedBefore,
    /// In the words of its child process.
    #[error("{0}")]
    Isolation(String),
    #[error("cannot persist its first process: {0}")]
    Persist(io::Error),
}

/// Starts the command.
fn begin(spec: &InitSpec, prepared: &mut Prepared, entry: Entry) -> Result<Started, StartFault> {
    let ends = prepared.ends.take().ok_or(StartFault::StartedBefore)?;
    // Dropped at the end: otherwise the output would never end.
    let stderr = ends.stderr.try_clone().map(File::from);
    let entry = Arc::new(entry);
    match start(spec, ends, &entry) {
        Ok(child) => {
            let running = keep_init(spec, prepared, &entry, child);
            running.map(Started::Runs).map_err(StartFault::Persist)
        }
        Err(err) => {
            let heard =
                entry.failure.read.try_clone().ok().and_then(|pipe| failure::read_failure(pipe, &spec.plan));
            if let Some(message) = heard {
                return Err(StartFault::Isolation(message));
            }
            let code = match err.kind() {
                io::ErrorKind::NotFound => EXIT_NOT_FOUND,
                _ => EXIT_NOT_RUNNABLE,
            };
            // The sandbox may be full; the status has the details.
            if let Ok(mut stderr) = stderr {
                writeln!(stderr, "Failed to execute '{}': {err}", spec.program).ok();
            }
            Ok(Started::Ended(ExitStatus::from_raw(code << 8)))
        }
    }
}

fn start(spec: &InitSpec, ends: Ends, entry: &Arc<Entry>) -> io::Result<Child> {
    let mut command = Command::new(&spec.program);
    let (name, arguments) =
        spec.arguments.split_first().map_or((&spec.program, &[][..]), |(first, rest)| (first, rest));
    command.arg0(name).args(arguments).env_clear().envs(&spec.environment);
    command.stdin(ends.stdin).stdout(ends.stdout).stderr(ends.stderr);
    let become_command = {
        let entry = entry.clone();
        move || entry.enter()
    };
    // SAFETY: only system calls, on memory allocated before the fork.
    // WHY: std neither unblocks signals nor enters namespaces and cgroups nor sets the supplementary groups.
    unsafe { command.pre_exec(become_command) };
    entry.with_pids(|| command.spawn())
}

/// Records the process that holds the container's namespaces, for processes that join them later.
fn keep_init(spec: &InitSpec, prepared: &Prepared, entry: &Entry, child: Child) -> io::Result<Running> {
    let mut init = child.id().cast_signed();
    for _ in 1..entry.inits() {
        let below = process::all()?.into_iter().find(|stat| stat.parent == init);
        init = below.map_or(init, |stat| stat.process.pid);
    }
    let status = match entry.inits() {
        0 => None,
        _ => {
            if let Some(stat) = Process::find(init)? {
                prepared.runtime.write_init(&Init::new(stat.process, &spec.plan))?;
            }
            Some(entry.status()?)
        }
    };
    Ok(Running { child, status })
}

impl Running {
    fn wait(self, switchboard: Option<&mut Switchboard>) -> ExitStatus {
        let own = match switchboard {
            Some(switchboard) => serve_until_end_of(&self.child, switchboard),
            None => wait_for(&self.child),
        };
        let Some(pipe) = self.status else { return own };
        let mut bytes = [0; 4];
        let told =
            rustix::io::ioctl_fionbio(&pipe, true).is_ok() && File::from(pipe).read_exact(&mut bytes).is_ok();
        match told {
            true => ExitStatus::from_raw(i32::from_ne_bytes(bytes)),
            // The init itself was killed, and the command with it.
            false => ExitStatus::from_raw(libc::SIGKILL),
        }
    }
}

/// As `wait_for`, with a switchboard to serve meanwhile.
fn serve_until_end_of(child: &Child, switchboard: &mut Switchboard) -> ExitStatus {
    let command = child.id().cast_signed();
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let Ok(signals) = SignalFd::with_flags(&SigSet::all(), flags) else { return wait_for(child) };
    loop {
        if switchboard.turn(Some(signals.as_fd()), None).is_err() {
            return wait_for(child);
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            match signal.ssi_signo.cast_signed() {
                libc::SIGCHLD => {
                    if let Some(status) = reap(command) {
                        return status;
                    }
                }
                // As in `next_signal`.
                _ if signal.ssi_pid == std::process::id() => (),
                // SAFETY, WHY: as in `wait_for`.
                signal => unsafe {
                    libc::kill(command, signal);
                },
            }
        }
    }
}

/// Passes signals on and reaps until the command has ended.
fn wait_for(child: &Child) -> ExitStatus {
    let command = child.id().cast_signed();
    loop {
        match next_signal() {
            libc::SIGCHLD => {
                if let Some(status) = reap(command) {
                    return status;
                }
            }
            // SAFETY: plain numbers; the command is our child and not reaped, so the pid is still its own.
            // WHY: safe wrappers do not take real-time signals.
            signal => unsafe {
                libc::kill(command, signal);
            },
        }
    }
}

/// The next signal from another process. Writing to a peer that is gone makes the kernel send SIGPIPE in our own
/// name: that one is not for the command.
fn next_signal() -> i32 {
    // SAFETY: an all-zero siginfo and a set filled by the C library are valid values, both ours.
    // WHY: safe wrappers panic on real-time signals.
    unsafe {
        let (mut set, mut info): (_, libc::siginfo_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut set);
        loop {
            let signal = libc::sigwaitinfo(&set, &mut info);
            if signal > 0 && (signal == libc::SIGCHLD || info.si_pid() != libc::getpid()) {
                return signal;
            }
        }
    }
}

/// Reaps all processes that have exited; the status of `command` if it is among them. Its exit does not end the loop:
/// the others are reaped too.
fn reap(command: i32) -> Option<ExitStatus> {
    let mut found = None;
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes to a local integer. WHY: the raw status is what we keep.
        let pid = unsafe { libc::waitpid(-1, &mut status, WaitPidFlag::WNOHANG.bits()) };
        match pid {
            pid if pid <= 0 => return found,
            pid if pid == command => found = Some(ExitStatus::from_raw(status)),
            _ => (),
        }
    }
}

/// A container terminates with its command: remaining processes are killed. A reaped process may leave children,
/// which then become ours; so this repeats until there are none.
fn end_the_rest(this: Process) -> io::Result<()> {
    while has_children() && tree::kill_below(this)? > 0 {
        // SAFETY: no memory is involved. WHY: the same call as in `reap`, here waiting.
        unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
        reap(0);
    }
    Ok(())
}

/// As subreaper we have no descendants if we have no children.
fn has_children() -> bool {
    // SAFETY: no memory is involved. WHY: no safe wrapper leaves the child to be reaped later.
    let found = unsafe {
        libc::waitid(libc::P_ALL, 0, std::ptr::null_mut(), libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)
    };
    found == 0
}
