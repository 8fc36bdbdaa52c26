//! What the kernel alone takes for a container: the same cgroups with such limits, and a process that is started, moved
//! into them and killed, by this program and without an agent. Made beside the containers of an agent, so that as many are
//! alive.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::isolated::SLEEP;

/// What is written to which files of a new cgroup, where it has such files.
const LIMITS: [(&str, &str); 9] = [
    ("cpu.shares", "10"),
    ("cpu.weight", "1"),
    ("memory.soft_limit_in_bytes", "33554432"),
    ("memory.limit_in_bytes", "33554432"),
    ("memory.low", "33554432"),
    ("memory.max", "33554432"),
    ("pids.max", "16384"),
    ("devices.deny", "a *:* rwm"),
    ("devices.allow", "c 1:3 rwm"),
];

/// A cgroup that was removed too early, while its process is still on its way out, is tried again.
const REMOVE_PAUSE: Duration = Duration::from_micros(100);
const REMOVALS_MAX: usize = 10_000;

/// A process in cgroups of its own.
pub struct Bare {
    cgroups: Vec<PathBuf>,
    child: Child,
}

impl Bare {
    /// One below each of these.
    pub fn launch(roots: &[PathBuf], name: &str) -> Result<Bare> {
        let cgroups: Vec<PathBuf> = roots.iter().map(|root| root.join(name)).collect();
        for cgroup in &cgroups {
            std::fs::create_dir(cgroup)?;
            let limits = LIMITS.iter().filter(|(file, _)| cgroup.join(file).exists());
            limits.into_iter().try_for_each(|(file, value)| write(&cgroup.join(file), value))?;
        }
        let (program, arguments) = SLEEP.split_first().context("there is a program")?;
        let bare = Bare { cgroups, child: Command::new(program).args(arguments).spawn()? };
        for cgroup in &bare.cgroups {
            // On v1 a process of one thread goes by this file, as those of containers do.
            let doors = ["tasks", "cgroup.procs"].map(|name| cgroup.join(name));
            let door = doors.into_iter().find(|door| door.exists()).context("a cgroup has a door")?;
            write(&door, &bare.child.id().to_string())?;
        }
        Ok(bare)
    }

    /// Kills the process and removes its cgroups.
    pub fn end(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.cgroups.iter().try_for_each(|cgroup| remove(cgroup))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.child.kill().ok(); // It was, if all went well.
        self.child.wait().ok();
    }
}

fn remove(cgroup: &Path) -> Result<()> {
    for _ in 0..REMOVALS_MAX {
        match std::fs::remove_dir(cgroup) {
            Err(err) if err.kind() == std::io::ErrorKind::ResourceBusy => std::thread::sleep(REMOVE_PAUSE),
            done => return Ok(done?),
        }
    }
    bail!("{} does not become empty", cgroup.display())
}

/// A control file is there before, and is not truncated.
fn write(file: &Path, value: &str) -> Result<()> {
    let written = std::fs::OpenOptions::new().write(true).open(file);
    let written = written.and_then(|mut file| file.write_all(value.as_bytes()));
    written.with_context(|| format!("cannot write '{value}' to {}", file.display()))
}

/// Work that is timed.
pub fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let began = Instant::now();
    Ok((work()?, began.elapsed()))
}

/// What an agent writes down before a launch takes about so much.
const RECORD: [u8; 4096] = [0; 4096];

/// The time until the disk has a record, in this directory.
pub fn record(folder: &Path) -> Result<Duration> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("records"))?;
    let ((), took) = timed(|| {
        file.write_all(&RECORD)?;
        Ok(file.sync_data()?)
    })?;
    Ok(took)
}
