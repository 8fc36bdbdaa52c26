//! Whoever uses more memory than it asked for goes first when there is none left, for as long as it does.
//!
//! The kernel tells when the use crosses the request (v1); where it cannot (v2), the use is looked at now and then. Above
//! the request every process of the container gets the highest score, below it the one it started with.
//! One per container that may burst, in its own task. Never here: who may burst.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::EventfdFlags;
use tokio::io::unix::AsyncFd;

use super::{Cgroups, Controller, Place, Version, destroy};
use crate::host::event;

/// The score of a process above its request: nothing goes before it.
const SCORE_ABOVE: i32 = 1000;

/// How often the use is looked at where the kernel does not tell.
const LOOK: Duration = Duration::from_secs(1);

/// Follows one container.
pub(crate) struct Burst {
    place: Place,
    /// The score below the request.
    score: i32,
    /// As last seen.
    above: Option<bool>,
    crossings: Option<Crossings>,
}

impl Burst {
    /// `None` if the container cannot use more than it asked for.
    pub fn follow(cgroups: &Cgroups) -> Option<Burst> {
        let (place, score) = (cgroups.own(Controller::Memory)?.clone(), cgroups.oom_score_adj?);
        let crossings = match place.version {
            Version::V1 => Crossings::watch(&place).map_err(|err| {
                tracing::warn!(cgroup = %place.cgroup.display(), %err, "cannot hear of crossed requests, looking instead");
            }),
            Version::V2 => Err(()),
        };
        let mut burst = Burst { place, score, above: None, crossings: crossings.ok() };
        burst.look();
        Some(burst)
    }

    /// Waits for the next change and makes it count. Cancel safe.
    pub async fn next(&mut self) {
        match &self.crossings {
            Some(crossings) => crossings.next().await,
            None => tokio::time::sleep(LOOK).await,
        }
        self.look();
    }

    fn look(&mut self) {
        let Some(above) = self.is_above() else { return };
        if self.above.replace(above) != Some(above) {
            let score = if above { SCORE_ABOVE } else { self.score };
            // Whoever is just being started inherits it, or is found next time.
            for pid in destroy::processes_below(&self.place.cgroup).unwrap_or_default() {
                std::fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string()).ok();
            }
        }
    }

    /// `None`: the cgroup is gone.
    fn is_above(&self) -> Option<bool> {
        let (usage, request) = match self.place.version {
            Version::V1 => ("memory.usage_in_bytes", "memory.soft_limit_in_bytes"),
            Version::V2 => ("memory.current", "memory.low"),
        };
        let number =
            |file| std::fs::read_to_string(self.place.cgroup.join(file)).ok()?.trim().parse::<u64>().ok();
        Some(number(usage)? > number(request)?)
    }
}

/// Waits for ever if there is nothing to follow.
pub(crate) async fn next(burst: &mut Option<Burst>) {
    match burst {
        Some(burst) => burst.next().await,
        None => std::future::pending().await,
    }
}

/// The kernel's word that the use of a v1 cgroup crossed its request, in either direction.
struct Crossings {
    event: AsyncFd<OwnedFd>,
    /// The kernel wants it open for as long as it tells.
    _usage: File,
}

impl Crossings {
    fn watch(place: &Place) -> io::Result<Crossings> {
        let file = |name: &str| -> PathBuf { place.cgroup.join(name) };
        let request = std::fs::read_to_string(file("memory.soft_limit_in_bytes"))?;
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let usage = File::open(file("memory.usage_in_bytes"))?;
        let wish = format!("{} {} {}", event.as_raw_fd(), usage.as_raw_fd(), request.trim());
        File::options().write(true).open(file("cgroup.event_control"))?.write_all(wish.as_bytes())?;
        Ok(Crossings { event: event::readable(event)?, _usage: usage })
    }

    async fn next(&self) {
        loop {
            let Ok(mut ready) = self.event.readable().await else { return std::future::pending().await };
            let read = ready.try_io(|event| {
                let mut count = [0; 8];
                rustix::io::read(event, &mut count).map_err(io::Error::from)
            });
            if let Ok(Ok(_)) = read {
                return;
            }
        }
    }
}
