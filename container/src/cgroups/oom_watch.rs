//! OOM kills in a running container, as the kernel notifies them: each of them terminates the container.
//!
//! On v1 an eventfd on `memory.oom_control` is signalled before the kill, for the cgroup at its limit and then for
//! all below it. So a container is at its own limit if its cgroup was signalled more often than the one around it. On
//! v2 `memory.events` changes with every kill, and counters identify the limit. v1 does not notify kills for the
//! whole machine: the machine's count of OOM kills is sampled, and if it rose the counters are read. One per
//! container, in its task. Absent: destruction of containers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tepui_types::{ContainerId, Termination};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::oom::{self, Counters};
use super::v1::notify;
use super::{Place, Version};
use crate::host::event;

/// The file of a v1 cgroup whose eventfds are signalled at its limit.
const OOM_CONTROL: &str = "memory.oom_control";

/// How often the machine's count of OOM kills is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// The container whose OOM kills are watched.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The container whose memory limit counts, itself or one around it: this one is destroyed.
    pub owner: ContainerId,
    /// The owner's memory cgroup.
    pub place: Place,
    /// The cgroup of the processes in question.
    pub processes: PathBuf,
    /// How many containers the owner is nested in.
    pub depth: usize,
    /// The subject is the owner.
    pub is_owner: bool,
}

impl Subject {
    /// Why the owner is out of memory, by the counters alone.
    pub fn judge(&self) -> Option<Termination> {
        oom::judge(&self.counters())
    }

    fn counters(&self) -> Vec<Counters> {
        oom::read_all(&self.place, &self.processes, self.depth)
    }
}

/// Watches one container.
#[derive(Debug)]
pub(crate) struct OomWatch {
    subject: Subject,
    events: Events,
    machine: MachineKills,
    /// Whatever happens from now on is notified.
    has_begun: bool,
}

#[derive(Debug)]
enum Events {
    V1(Notifications),
    /// `memory.events`, which has news when it becomes exceptional.
    V2(AsyncFd<OwnedFd>),
    /// The kernel does not notify.
    None,
}

impl OomWatch {
    /// `None`: on v1 a container that shares the memory cgroup of its owner is watched with it.
    pub fn follow(subject: Subject, sources: &OomSources) -> Option<OomWatch> {
        let machine = sources.machine.clone();
        let events = match subject.place.version {
            Version::V1 if !subject.is_owner => return None,
            Version::V1 => Notifications::register(&subject.place.cgroup, sources).map(Events::V1),
            Version::V2 if subject.is_owner => changes(&subject.place.cgroup).map(Events::V2),
            Version::V2 => changes(&subject.processes).map(Events::V2),
        };
        let events = events.unwrap_or_else(|err| {
            let cgroup = subject.place.cgroup.display();
            tracing::warn!(%cgroup, %err, "the kernel does not notify OOM kills, sampling instead");
            Events::None
        });
        Some(OomWatch { subject, events, machine, has_begun: false })
    }

    /// The container to destroy.
    pub fn owner(&self) -> &ContainerId {
        &self.subject.owner
    }

    /// Waits until the container is out of memory. Cancel safe.
    pub async fn next(&mut self) -> Termination {
        loop {
            if let Some(found) = self.poll() {
                return found;
            }
            tokio::select! {
                () = self.events.changed() => (),
                () = self.machine.changed() => (),
            }
        }
    }

    /// Why the container is out of memory, if it is.
    pub fn poll(&mut self) -> Option<Termination> {
        let is_at_limit = match &mut self.events {
            Events::V1(notifications) => Some(notifications.is_at_limit()),
            Events::V2(_) | Events::None => None,
        };
        let mut all = self.subject.counters();
        let own = all.first_mut()?;
        match is_at_limit {
            Some(true) => return Some(oom::limit_exceeded(own)),
            // It may have been at its limit for its caches, without a kill.
            Some(false) if self.has_begun => own.stopped = false,
            Some(false) | None => (),
        }
        self.has_begun = true;
        oom::judge(&all)
    }
}

/// Never returns if there is nothing to watch.
pub(crate) async fn next(watch: &mut Option<OomWatch>) -> (ContainerId, Termination) {
    match watch {
        Some(watch) => {
            let why = watch.next().await;
            (watch.owner().clone(), why)
        }
        None => std::future::pending().await,
    }
}

impl Events {
    async fn changed(&self) {
        match self {
            Events::V1(notifications) => {
                let Ok(mut ready) = notifications.own.readable().await else {
                    return std::future::pending().await;
                };
                ready.clear_ready();
            }
            Events::V2(events) => {
                let Ok(mut ready) = events.ready(Interest::PRIORITY).await else {
                    return std::future::pending().await;
                };
                ready.clear_ready();
                read(events.get_ref());
            }
            Events::None => std::future::pending().await,
        }
    }
}

/// The signals of a v1 cgroup and of the one around it.
#[derive(Debug)]
struct Notifications {
    own: AsyncFd<OwnedFd>,
    own_count: u64,
    around: Option<Arc<Signal>>,
    /// What was counted around it before it was registered itself.
    parent_before: u64,
}

impl Notifications {
    fn register(cgroup: &Path, sources: &OomSources) -> io::Result<Notifications> {
        // The outer one first: it must not miss a signal that the inner one counts.
        let around = cgroup.parent().and_then(|around| sources.signal(around).ok());
        let parent_before = around.as_ref().map_or(0, |signal| signal.count());
        let own = event::readable(notify::register(cgroup, OOM_CONTROL, "")?)?;
        Ok(Notifications { own, own_count: 0, around, parent_before })
    }

    /// Whether the cgroup itself was at its limit. The inner count is read first, because the kernel signals it last.
    fn is_at_limit(&mut self) -> bool {
        self.own_count += notify::take(self.own.get_ref());
        let around = self.around.as_ref().map_or(0, |signal| signal.count());
        self.own_count > around - self.parent_before
    }
}

/// The OOM signals of a v1 cgroup that has others below it, counted for all of these.
#[derive(Debug)]
struct Signal {
    event: OwnedFd,
    count: Mutex<u64>,
}

impl Signal {
    fn count(&self) -> u64 {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += notify::take(&self.event);
        *count
    }
}

/// What all watches of an agent share: a descriptor for each cgroup around others, and the machine's count of OOM kills.
#[derive(Clone, Debug)]
pub(crate) struct OomSources {
    machine: MachineKills,
    /// By the inode: a path may be made anew.
    signals: Arc<Mutex<BTreeMap<u64, Weak<Signal>>>>,
}

impl OomSources {
    /// Must be called within a tokio runtime.
    pub fn open() -> OomSources {
        OomSources { machine: MachineKills::sample(), signals: Arc::default() }
    }

    fn signal(&self, cgroup: &Path) -> io::Result<Arc<Signal>> {
        let inode = std::fs::metadata(cgroup)?.ino();
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = signals.get(&inode).and_then(Weak::upgrade) {
            return Ok(known);
        }
        signals.retain(|_, signal| signal.strong_count() > 0);
        let event = notify::register(cgroup, OOM_CONTROL, "")?;
        let signal = Arc::new(Signal { event, count: Mutex::default() });
        signals.insert(inode, Arc::downgrade(&signal));
        Ok(signal)
    }
}

/// A v2 cgroup's `memory.events`, read, so that the next change is news.
fn changes(cgroup: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let file = OwnedFd::from(File::open(cgroup.join("memory.events"))?);
    read(&file);
    event::exceptional(file)
}

/// The kernel notifies changes since the last read of the file.
fn read(file: &OwnedFd) {
    let mut text = [0; 512];
    rustix::io::pread(file, &mut text, 0).ok(); // The cgroup is removed: no further notifications.
}

/// The machine's count of OOM kills, sampled for all containers of the agent.
#[derive(Clone, Debug)]
struct MachineKills(watch::Receiver<u64>);

impl MachineKills {
    /// Samples until the last clone is dropped. Must be called within a tokio runtime.
    fn sample() -> MachineKills {
        let (sender, receiver) = watch::channel(machine_kills().unwrap_or(0));
        // Reads a file of the kernel and has nothing to fail by.
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => (),
                    () = sender.closed() => return,
                }
                let Some(kills) = machine_kills() else { return };
                sender.send_if_modified(|known| std::mem::replace(known, kills) != kills);
            }
        });
        MachineKills(receiver)
    }

    async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await // The kernel does not count them.
        }
    }
}

fn machine_kills() -> Option<u64> {
    kills_in(&std::fs::read_to_string("/proc/vmstat").ok()?)
}

/// `oom_kill 3` among the lines of /proc/vmstat.
fn kills_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_oom_kills_are_read_from_vmstat() {
        assert_eq!(kills_in("pgfault 7\noom_kill 3\nnuma_hit 9\n"), Some(3));
        assert_eq!(kills_in("pgfault 7\n"), None);
    }
}
