//! While a container uses more memory than its request, it is killed first on a machine out of memory.
//!
//! The kernel notifies when the usage crosses the request (v1) or when the container waits for memory (v2); then the
//! usage is read. Above the request every process of the container has the highest score, below it the score it
//! started with. One task per container that may burst. Absent: the decision which containers may burst.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::v1::notify;
use super::{Cgroups, Controller, Place, Version, oom};
use crate::host::event;

/// The score of a process above its request: nothing goes before it.
const SCORE_ABOVE: i32 = 1000;

/// Interval of reading the usage where the kernel does not notify.
const LOOK: Duration = Duration::from_secs(1);

/// The same where the kernel notifies pressure: without pressure, scores have no effect.
const LOOK_WITHOUT_PRESSURE: Duration = Duration::from_secs(5);

/// Notify after stalls of so long within so long, in microseconds.
const PRESSURE_US: (u64, u64) = (10_000, 500_000);

/// Follows one container.
pub(crate) struct Burst {
    place: Place,
    /// The score below the request.
    score: i32,
    /// As last seen.
    above: Option<bool>,
    news: News,
}

/// The notification after which the usage is read.
enum News {
    Crossings(Crossings),
    Pressure(AsyncFd<OwnedFd>),
    /// Not at all.
    None,
}

impl Burst {
    /// `None` if the container cannot exceed its request.
    pub fn follow(cgroups: &Cgroups) -> Option<Burst> {
        let (place, score) = (cgroups.own(Controller::Memory)?.clone(), cgroups.oom_score_adj?);
        let news = match place.version {
            Version::V1 => Crossings::watch(&place).map(News::Crossings),
            Version::V2 => pressure(&place).map(News::Pressure),
        };
        let news = news.unwrap_or_else(|err| {
            tracing::warn!(cgroup = %place.cgroup.display(), %err, "cannot subscribe to memory events, polling instead");
            News::None
        });
        let mut burst = Burst { place, score, above: None, news };
        burst.poll();
        Some(burst)
    }

    /// Waits for the next change and makes it count. Cancel safe.
    pub async fn next(&mut self) {
        match &self.news {
            News::Crossings(crossings) => crossings.next().await,
            News::Pressure(event) => {
                let told = tokio::time::timeout(LOOK_WITHOUT_PRESSURE, event.ready(Interest::PRIORITY)).await;
                if let Ok(Ok(mut ready)) = told {
                    ready.clear_ready();
                }
            }
            News::None => tokio::time::sleep(LOOK).await,
        }
        self.poll();
    }

    fn poll(&mut self) {
        let Some(above) = self.is_above() else { return };
        if self.above.replace(above) != Some(above) {
            oom::score_all(&self.place.cgroup, if above { SCORE_ABOVE } else { self.score });
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
        // v1 notifies once, when the usage reaches the request: a usage that is read as equal may be on its way up.
        Some(number(usage)? >= number(request)?)
    }
}

/// Waits for ever if there is nothing to follow.
pub(crate) async fn next(burst: &mut Option<Burst>) {
    match burst {
        Some(burst) => burst.next().await,
        None => std::future::pending().await,
    }
}

/// Becomes exceptional when processes of a v2 cgroup had to wait for memory.
fn pressure(place: &Place) -> io::Result<AsyncFd<OwnedFd>> {
    let mut file = File::options().read(true).write(true).open(place.cgroup.join("memory.pressure"))?;
    let (stall, window) = PRESSURE_US;
    file.write_all(format!("some {stall} {window}").as_bytes())?;
    event::exceptional(file.into())
}

/// The kernel's word that the use of a v1 cgroup crossed its request, in either direction.
struct Crossings(AsyncFd<OwnedFd>);

impl Crossings {
    fn watch(place: &Place) -> io::Result<Crossings> {
        let request = std::fs::read_to_string(place.cgroup.join("memory.soft_limit_in_bytes"))?;
        let event = notify::register(&place.cgroup, "memory.usage_in_bytes", request.trim())?;
        Ok(Crossings(event::readable(event)?))
    }

    async fn next(&self) {
        let Ok(mut ready) = self.0.readable().await else { return std::future::pending().await };
        ready.clear_ready();
        notify::take(self.0.get_ref());
    }
}
