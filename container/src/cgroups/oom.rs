//! OOM kills by the counters of memory cgroups, and the OOM scores of processes.
//!
//! A counter is incremented before the victim dies, so it is current once the exit was reaped. At the limit of the
//! container or of one around it: the limit was exceeded. Killed for the whole machine while above its request: the
//! request was exceeded. Every OOM kill terminates its container (`oom_watch`), so a count above zero is never from
//! an earlier run.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::Termination;

use super::{Cgroups, Controller, Place, Version, destroy};

const BYTES_PER_MB: u64 = 1024 * 1024;

/// The kernel takes memory for a cgroup in batches, so one at its limit may have used a little less.
const BATCH_BYTES: u64 = BYTES_PER_MB;

/// Guaranteed containers last, those without a request first; the scores in between are for the others.
const SCORE_MIN: i64 = 3;
const SCORE_MAX: i64 = 999;
const SCORE_OF_NO_REQUEST: i32 = 1000;

/// A container that forks faster than this is scored in part.
const SCORE_ROUNDS_MAX: usize = 16;

/// Score of a process that may exceed the memory `request` of its container: the smaller the request, the higher the
/// score, so that of two with the same usage the one further above its request is killed first.
pub(crate) fn score_adj(request_bytes: u64, capacity_bytes: u64) -> i32 {
    if request_bytes == 0 {
        return SCORE_OF_NO_REQUEST;
    }
    let part = u128::from(request_bytes) * 1000 / u128::from(capacity_bytes.max(1));
    let score = 1000 - i64::try_from(part).unwrap_or(i64::MAX / 2);
    i32::try_from(score.clamp(SCORE_MIN, SCORE_MAX)).unwrap_or(0)
}

/// Score of processes without a score of their own: inherited from this process.
pub(crate) fn own_score() -> i32 {
    let text = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Gives every process in the cgroup and below it this score. A process that is started meanwhile may have inherited
/// the former score: all have the new one only when a pass finds no new process.
pub(crate) fn score_all(cgroup: &Path, score: i32) {
    let mut scored = BTreeSet::new();
    for _ in 0..SCORE_ROUNDS_MAX {
        let mut found = destroy::processes_below(cgroup).unwrap_or_default();
        found.retain(|pid| scored.insert(*pid));
        if found.is_empty() {
            return;
        }
        for pid in found {
            std::fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string()).ok();
        }
    }
}

/// Contents of the files of one memory cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// OOM kills of processes in this very cgroup.
    pub kills: u64,
    /// The same with those in cgroups below it, where the kernel counts these: v2.
    pub kills_below: u64,
    /// Its limit was in the way at least once.
    pub stopped: bool,
    pub request_bytes: u64,
    /// `None`: endless.
    pub limit_bytes: Option<u64>,
    /// The most that was ever used.
    pub peak_bytes: u64,
}

impl Counters {
    /// `None` if it has no memory controller, or is gone.
    pub fn read(version: Version, cgroup: &Path, processes: &Path) -> Option<Counters> {
        match version {
            Version::V1 => Counters::read_v1(cgroup),
            Version::V2 => Counters::read_v2(cgroup, processes),
        }
    }

    fn read_v1(cgroup: &Path) -> Option<Counters> {
        // First: what led to the kills that are counted is then in the other files.
        let kills = keyed(cgroup, "memory.oom_control", "oom_kill").unwrap_or(0);
        let peak_bytes = number(cgroup, "memory.max_usage_in_bytes")?;
        let limit_bytes =
            number(cgroup, "memory.limit_in_bytes").filter(|limit| *limit < i64::MAX as u64 / 2);
        let failed = number(cgroup, "memory.failcnt").is_some_and(|count| count > 0);
        Some(Counters {
            kills,
            kills_below: kills,
            // Newer kernels do not count failures of memory and swap together.
            stopped: (reached(cgroup, "memory") && failed) || reached(cgroup, "memory.memsw"),
            request_bytes: number(cgroup, "memory.soft_limit_in_bytes")?,
            limit_bytes,
            peak_bytes,
        })
    }

    fn read_v2(cgroup: &Path, processes: &Path) -> Option<Counters> {
        let events = |cgroup: &Path, key| keyed(cgroup, "memory.events.local", key);
        let kills_below = keyed(cgroup, "memory.events", "oom_kill")?;
        Some(Counters {
            kills: events(processes, "oom_kill").unwrap_or(kills_below),
            kills_below,
            stopped: events(cgroup, "oom").is_some_and(|count| count > 0),
            request_bytes: number(cgroup, "memory.low")?,
            limit_bytes: number(cgroup, "memory.max"),
            peak_bytes: number(cgroup, "memory.peak").or_else(|| number(cgroup, "memory.current"))?,
        })
    }
}

/// The counters of a container's memory cgroup and of those of the `around` containers it is nested in, its own
/// first. Everything above them counts as the machine, also the cgroup of all containers, which an operator may have
/// limited. `processes` is the cgroup of the processes in question.
pub(crate) fn read_all(place: &Place, processes: &Path, around: usize) -> Vec<Counters> {
    let own = Counters::read(place.version, &place.cgroup, processes);
    // Between a container and those nested in it there is one more cgroup, which limits nothing.
    let around = place.cgroup.ancestors().skip(1).take(2 * around);
    own.into_iter().chain(around.map_while(|cgroup| Counters::read(place.version, cgroup, cgroup))).collect()
}

/// Whether a container's memory is counted by itself.
pub(crate) fn has_request(cgroups: &Cgroups) -> bool {
    request_and_limit(cgroups).is_some_and(|(request, _)| request > 0)
}

/// The request of a container that may exceed it and whose processes are killed first for that.
pub(crate) fn bursting_request(cgroups: &Cgroups) -> Option<u64> {
    let (request, limit) = request_and_limit(cgroups)?;
    let place = cgroups.own(Controller::Memory)?;
    let first = destroy::processes_below(&place.processes()).ok()?.into_iter().next()?;
    let score = number(&Path::new("/proc").join(first.to_string()), "oom_score_adj")?;
    (score > 0 && limit.is_none_or(|limit| limit > request)).then_some(request)
}

fn request_and_limit(cgroups: &Cgroups) -> Option<(u64, Option<u64>)> {
    let place = cgroups.own(Controller::Memory)?;
    let counters = Counters::read(place.version, &place.cgroup, &place.processes())?;
    Some((counters.request_bytes, counters.limit_bytes))
}

/// Why a container is out of memory, by its counters and those of the containers around it, its own first. `None`: no
/// process of it was killed, nor one below it at its limit.
pub(crate) fn judge(all: &[Counters]) -> Option<Termination> {
    let own = all.first()?;
    if own.stopped && own.kills_below > 0 {
        return Some(limit_exceeded(own));
    }
    if own.kills == 0 {
        return None;
    }
    Some(match all.iter().find(|one| one.stopped) {
        Some(around) => limit_exceeded(around),
        None => machine_out_of_memory(own),
    })
}

/// A cgroup with these counters was at its limit.
pub(crate) fn limit_exceeded(at: &Counters) -> Termination {
    Termination {
        state: Some(TaskState::TASK_FAILED),
        reason: Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        message: Some(format!("Memory limit exceeded: {at}")),
        limited: vec![used(at.peak_bytes)],
        ..Default::default()
    }
}

/// A process was killed although no limit of a container was reached.
fn machine_out_of_memory(own: &Counters) -> Termination {
    if own.peak_bytes <= own.request_bytes {
        let message = format!("Killed because the machine ran out of memory, within its request: {own}");
        return Termination {
            state: Some(TaskState::TASK_FAILED),
            message: Some(message),
            ..Default::default()
        };
    }
    Termination {
        state: Some(TaskState::TASK_FAILED),
        reason: Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED),
        message: Some(format!("Memory request exceeded while the machine ran out of memory: {own}")),
        limited: vec![used(own.peak_bytes)],
        ..Default::default()
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| format!("{}MB", bytes / BYTES_PER_MB);
        let limit = self.limit_bytes.map_or_else(|| String::from("Infinity"), mb);
        let (request, peak) = (mb(self.request_bytes), mb(self.peak_bytes));
        write!(f, "Requested: {request} Limit: {limit} Maximum Used: {peak}")
    }
}

/// The amount of memory, as a resource whose limit was reached.
pub(crate) fn used(bytes: u64) -> pb::Resource {
    pb::Resource {
        name: String::from("mem"),
        r#type: pb::value::Type::SCALAR,
        scalar: pb::value::Scalar { value: (bytes / BYTES_PER_MB) as f64, ..Default::default() }.into(),
        ..Default::default()
    }
}

/// Whether a limit of v1, with swap or without, was reached.
fn reached(cgroup: &Path, which: &str) -> bool {
    let of = |what: &str| number(cgroup, &format!("{which}.{what}"));
    let peak_and_limit = of("max_usage_in_bytes").zip(of("limit_in_bytes"));
    peak_and_limit.is_some_and(|(peak, limit)| peak + BATCH_BYTES >= limit)
}

fn number(cgroup: &Path, file: &str) -> Option<u64> {
    std::fs::read_to_string(cgroup.join(file)).ok()?.trim().parse().ok()
}

fn keyed(cgroup: &Path, file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(cgroup.join(file)).ok()?;
    let mut values = text.lines().filter_map(|line| line.split_once(' '));
    values.find(|(name, _)| *name == key)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const MB: u64 = BYTES_PER_MB;

    fn own(kills: u64, stopped: bool, peak_mb: u64) -> Counters {
        Counters {
            kills,
            kills_below: kills,
            stopped,
            request_bytes: 64 * MB,
            limit_bytes: Some(128 * MB),
            peak_bytes: peak_mb * MB,
        }
    }

    fn check(all: &[Counters], expected: Expect) {
        let text = judge(all)
            .map_or_else(String::new, |end| format!("{:?} {}", end.reason, end.message.unwrap_or_default()));
        expected.assert_eq(&text);
    }

    #[test]
    fn reason_and_message_of_every_oom_kill() {
        check(&[own(0, true, 128)], expect![""]);
        check(
            &[own(1, true, 128)],
            expect![
                "Some(REASON_CONTAINER_LIMITATION_MEMORY) Memory limit exceeded: Requested: 64MB Limit: 128MB Maximum Used: 128MB"
            ],
        );
        check(
            &[own(2, false, 100)],
            expect![
                "Some(REASON_MEMORY_REQUEST_EXCEEDED) Memory request exceeded while the machine ran out of memory: Requested: 64MB Limit: 128MB Maximum Used: 100MB"
            ],
        );
        check(
            &[own(1, false, 60)],
            expect![
                "None Killed because the machine ran out of memory, within its request: Requested: 64MB Limit: 128MB Maximum Used: 60MB"
            ],
        );
        let around = Counters { limit_bytes: Some(200 * MB), request_bytes: 200 * MB, ..own(0, true, 200) };
        let of_around = expect![
            "Some(REASON_CONTAINER_LIMITATION_MEMORY) Memory limit exceeded: Requested: 200MB Limit: 200MB Maximum Used: 200MB"
        ];
        check(&[own(1, false, 60), around], of_around);
        check(&[], expect![""]);
    }

    /// On v2 the kill of a nested process counts only for the container whose limit was reached.
    #[test]
    fn nested_oom_kill_counts_only_for_the_exceeded_limit() {
        let below = |stopped| Counters { kills_below: 1, ..own(0, stopped, 128) };
        assert_eq!(judge(&[below(false)]), None);
        let reason = judge(&[below(true)]).and_then(|end| end.reason);
        assert_eq!(reason, Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY));
    }

    #[test]
    fn oom_score_decreases_with_the_memory_request() {
        let capacity = 16_384 * MB;
        for (request_mb, score) in [(96, 995), (64, 997), (1056, 936), (1, 999), (16_384, 3), (99_999, 3)] {
            assert_eq!(score_adj(request_mb * MB, capacity), score, "{request_mb}");
        }
        assert_eq!(score_adj(1, 0), 3);
        assert_eq!(score_adj(0, capacity), 1000);
    }

    #[test]
    fn oom_counters_are_read_on_v1_and_v2() {
        let dir = tempfile::tempdir().expect("a directory");
        let place =
            |version| Place { version, controllers: Vec::new(), cgroup: dir.path().join("c"), own: true };
        let write = |file: &str, text: &str| {
            let file = dir.path().join("c").join(file);
            std::fs::create_dir_all(file.parent().expect("it is below")).expect("made");
            std::fs::write(file, text).expect("written");
        };
        write("memory.max_usage_in_bytes", "134217728\n");
        write("memory.limit_in_bytes", "134217728\n");
        write("memory.soft_limit_in_bytes", "67108864\n");
        write("memory.failcnt", "3\n");
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
        let read_all = |version| read_all(&place(version), &place(version).processes(), 0);
        assert_eq!(read_all(Version::V1), [own(1, true, 128)]);
        // The same limit for memory and swap together.
        write("memory.failcnt", "0\n");
        assert_eq!(read_all(Version::V1), [own(1, false, 128)]);
        write("memory.memsw.max_usage_in_bytes", "134217728\n");
        write("memory.memsw.limit_in_bytes", "134217728\n");
        assert_eq!(read_all(Version::V1), [own(1, true, 128)]);
        write("memory.peak", "104857600\n");
        write("memory.max", "134217728\n");
        write("memory.low", "67108864\n");
        write("memory.events", "low 0\nmax 9\noom 0\noom_kill 2\n");
        write("memory.events.local", "low 0\nmax 9\noom 0\noom_kill 0\n");
        write("leaf/memory.events.local", "oom 0\noom_kill 2\n");
        assert_eq!(read_all(Version::V2), [own(2, false, 100)]);
    }
}
