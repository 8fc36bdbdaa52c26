//! Whether a process of a container was OOM-killed, and which memory limit was reached.
//!
//! The engine reports limits only, not whether the limit was the container's own or one around it, and not whether
//! the machine ran out of memory. The counters of the container's cgroup contain all of it, but the engine removes
//! the cgroup soon after the termination: so a thread waits for the first process of the container and reads them at
//! that moment. On v1 it waits inside of the cgroup, which cannot be removed before the thread has left, while the
//! memory of its process stays accounted elsewhere. On v2, where threads cannot do so, it has to be faster than the
//! engine.

use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use tokio::sync::oneshot;

const MB: u64 = 1024 * 1024;

/// The kernel takes memory for a cgroup in batches, so one at its limit may have used a little less.
const BATCH_BYTES: u64 = MB;

/// The engine retries the removal of an occupied cgroup for a fifth of a second; longer is not needed.
const PRIORITY: i32 = -20;

/// The files of a container's memory cgroup at its termination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Number of OOM-killed processes.
    pub kills: u64,
    /// Its own limit was in the way.
    pub stopped: bool,
    pub request_bytes: u64,
    /// `None`: endless.
    pub limit_bytes: Option<u64>,
    /// The most that was ever used.
    pub peak_bytes: u64,
}

/// Waits for the end of a container.
#[derive(Debug)]
pub struct MemoryWatch(oneshot::Receiver<Option<Memory>>);

impl MemoryWatch {
    /// By the container's first process. None if that has ended already, or is not on this machine.
    pub fn follow(pid: i32) -> Option<MemoryWatch> {
        let process = rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let cgroup = Cgroup::of(pid)?;
        cgroup.kill_together();
        let (done, found) = oneshot::channel();
        let wait = move || {
            // On Linux this concerns the calling thread. Without the permission it is as fast as other threads.
            rustix::process::setpriority_process(None, PRIORITY).ok();
            cgroup.enter();
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            while let Err(rustix::io::Errno::INTR) = rustix::event::poll(&mut ended, None) {}
            let _ = done.send(cgroup.read()); // The receiver was dropped.
        };
        std::thread::Builder::new().name("memory".into()).spawn(wait).ok()?;
        Some(MemoryWatch(found))
    }

    /// What was found, once the container has ended. None if the engine was faster.
    pub async fn ended(self) -> Option<Memory> {
        self.0.await.ok().flatten()
    }
}

impl Memory {
    /// `Requested: 64MB Limit: 128MB Maximum Used: 100MB`
    pub fn show(&self) -> String {
        let mb = |bytes: u64| format!("{}MB", bytes / MB);
        let limit = self.limit_bytes.map_or_else(|| String::from("Infinity"), mb);
        format!("Requested: {} Limit: {limit} Maximum Used: {}", mb(self.request_bytes), mb(self.peak_bytes))
    }
}

#[derive(Debug)]
enum Cgroup {
    V1(PathBuf),
    V2(PathBuf),
}

impl Cgroup {
    fn of(pid: i32) -> Option<Cgroup> {
        let (groups, mounts) = (format!("/proc/{pid}/cgroup"), "/proc/self/mountinfo");
        Cgroup::find(&std::fs::read_to_string(groups).ok()?, &std::fs::read_to_string(mounts).ok()?)
    }

    /// From the lines of `/proc/<pid>/cgroup` and of `/proc/self/mountinfo`.
    fn find(groups: &str, mounts: &str) -> Option<Cgroup> {
        let group = |is_it: fn(&str) -> bool| {
            let mut lines = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            lines.find(|(controllers, _)| is_it(controllers)).map(|(_, path)| path)
        };
        let mount = |is_it: fn(&str, &str) -> bool| {
            let mut lines = mounts.lines().filter_map(|line| line.split_once(" - "));
            let found = lines.find(|(_, rest)| {
                let mut words = rest.split(' ');
                let (kind, options) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
                is_it(kind, options)
            });
            let mut words = found?.0.split(' ').skip(3);
            Some((words.next()?, Path::new(words.next()?)))
        };
        // What is mounted may be a part of the hierarchy.
        let place = |group: &str, (root, mount): (&str, &Path)| {
            let below = Path::new(group).strip_prefix(root).ok()?;
            Some(mount.join(below))
        };
        match group(has_memory) {
            Some(group) => {
                place(group, mount(|kind, options| kind == "cgroup" && has_memory(options))?).map(Cgroup::V1)
            }
            None => place(group(str::is_empty)?, mount(|kind, _| kind == "cgroup2")?).map(Cgroup::V2),
        }
    }

    /// Lets an OOM kill end all processes of the container, where the kernel can do that: v2.
    fn kill_together(&self) {
        if let Cgroup::V2(dir) = self {
            std::fs::write(dir.join("memory.oom.group"), "1").ok(); // An old kernel: the agent ends the others.
        }
    }

    /// Holds it until this thread ends, where that can be.
    fn enter(&self) {
        if let Cgroup::V1(dir) = self {
            std::fs::write(dir.join("tasks"), "0").ok(); // Gone already: then there is nothing to wait for.
        }
    }

    /// `None` if it is gone.
    fn read(&self) -> Option<Memory> {
        match self {
            Cgroup::V1(dir) => {
                let kills = keyed(dir, "memory.oom_control", "oom_kill")?;
                let peak_bytes = number(dir, "memory.max_usage_in_bytes")?;
                let limit_bytes = number(dir, "memory.limit_in_bytes").filter(|limit| *limit < 1 << 60);
                let failed = number(dir, "memory.failcnt").is_some_and(|count| count > 0);
                // Newer kernels do not count failures of memory and swap together.
                let stopped = (reached(dir, "memory") && failed) || reached(dir, "memory.memsw");
                let request_bytes = number(dir, "memory.soft_limit_in_bytes")?;
                Some(Memory { kills, stopped, request_bytes, limit_bytes, peak_bytes })
            }
            Cgroup::V2(dir) => Some(Memory {
                kills: keyed(dir, "memory.events", "oom_kill")?,
                stopped: keyed(dir, "memory.events.local", "oom").is_some_and(|count| count > 0),
                request_bytes: number(dir, "memory.low")?,
                limit_bytes: number(dir, "memory.max"),
                peak_bytes: number(dir, "memory.peak").or_else(|| number(dir, "memory.current"))?,
            }),
        }
    }
}

/// Where cgroups of v2 are, if they are what counts memory.
pub(crate) fn v2_mount() -> Option<PathBuf> {
    let text = |file: &str| std::fs::read_to_string(file).ok();
    let found = Cgroup::find(&text("/proc/self/cgroup")?, &text("/proc/self/mountinfo")?)?;
    let Cgroup::V2(own) = found else { return None };
    own.ancestors().filter(|dir| dir.join("cgroup.controllers").exists()).last().map(Path::to_owned)
}

/// Whether a limit of v1, with swap or without, was reached.
fn reached(dir: &Path, which: &str) -> bool {
    let of = |what: &str| number(dir, &format!("{which}.{what}"));
    let peak_and_limit = of("max_usage_in_bytes").zip(of("limit_in_bytes"));
    peak_and_limit.is_some_and(|(peak, limit)| peak + BATCH_BYTES >= limit)
}

/// Whether it is among names by comma.
fn has_memory(names: &str) -> bool {
    names.split(',').any(|name| name == "memory")
}

pub(crate) fn number(dir: &Path, file: &str) -> Option<u64> {
    std::fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()
}

pub(crate) fn keyed(dir: &Path, file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(dir.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_cgroup_is_found_from_proc_files() {
        let v1 = "36 25 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let part = "36 25 0:31 /docker /m rw - cgroup cgroup rw,memory\n";
        let v2 = "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let found =
            |groups: &str, mounts: &str| Cgroup::find(groups, mounts).map(|found| format!("{found:?}"));
        let old = "5:cpu,cpuacct:/x\n4:memory:/docker/a\n0::/\n";
        assert_eq!(
            found(old, &format!("{v2}{v1}")).as_deref(),
            Some("V1(\"/sys/fs/cgroup/memory/docker/a\")")
        );
        assert_eq!(found(old, part).as_deref(), Some("V1(\"/m/a\")"));
        assert_eq!(found(old, v2), None);
        let new = "0::/system.slice/docker-a.scope\n";
        let place = "V2(\"/sys/fs/cgroup/system.slice/docker-a.scope\")";
        assert_eq!(found(new, v2).as_deref(), Some(place));
        assert_eq!(found(new, part), None);
        assert_eq!(found("", v2), None);
    }

    #[test]
    fn memory_counters_are_read_on_v1_and_v2() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).expect("written");
        let (v1, v2) = (Cgroup::V1(dir.path().to_owned()), Cgroup::V2(dir.path().to_owned()));
        assert_eq!((v1.read(), v2.read()), (None, None));
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
        write("memory.max_usage_in_bytes", "134217000\n");
        write("memory.limit_in_bytes", "134217728\n");
        write("memory.soft_limit_in_bytes", "67108864\n");
        write("memory.failcnt", "3\n");
        let found = v1.read().expect("there");
        assert!(found.stopped && found.kills == 1, "{found:?}");
        assert_eq!(found.show(), "Requested: 64MB Limit: 128MB Maximum Used: 127MB");
        // Memory and swap together may have the same limit, and are counted first.
        write("memory.failcnt", "0\n");
        assert!(!v1.read().expect("there").stopped);
        write("memory.memsw.max_usage_in_bytes", "134217000\n");
        write("memory.memsw.limit_in_bytes", "134217728\n");
        assert!(v1.read().expect("there").stopped);
        write("memory.memsw.limit_in_bytes", "9223372036854771712\n");
        write("memory.limit_in_bytes", "9223372036854771712\n");
        let found = v1.read().expect("there");
        assert!(!found.stopped, "{found:?}");
        assert_eq!(found.show(), "Requested: 64MB Limit: Infinity Maximum Used: 127MB");
        for (file, text) in [
            ("memory.events", "low 0\noom 0\noom_kill 2\noom_group_kill 0\n"),
            ("memory.events.local", "oom 1\n"),
            ("memory.low", "1048576\n"),
            ("memory.max", "max\n"),
            ("memory.peak", "2097152\n"),
        ] {
            write(file, text);
        }
        let expected =
            Memory { kills: 2, stopped: true, request_bytes: MB, limit_bytes: None, peak_bytes: 2 * MB };
        assert_eq!(v2.read(), Some(expected));
    }
}
