//! Why a container terminated: whether by an OOM kill, and at which limit.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::parent_cgroup::ParentCgroup;
use crate::{Engine, Memory, MemoryWatch, Setup};

/// Exit code after SIGKILL, by any sender.
const KILLED_CODE: i64 = 128 + 9;

const BYTES_PER_MB: u64 = 1024 * 1024;

/// A process of a container was OOM-killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfMemory {
    pub whose: OomCause,
    /// The same in words, with requested, limit and used.
    pub message: String,
    /// The most that was ever used, if that is known.
    pub peak_bytes: Option<u64>,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OomCause {
    /// It was over its own limit.
    Own,
    /// The machine had no more, and it was over its request.
    OthersOverRequest,
    /// The machine had no more, and it was within its request.
    OthersWithinRequest,
}

/// Watches a container from its creation to its termination.
#[derive(Debug)]
pub struct EndWatch {
    /// In seconds.
    began: u64,
    memory: Option<MemoryWatch>,
    around: Option<ParentCgroup>,
}

impl EndWatch {
    /// To be called before the container is made, of this document.
    pub async fn begin(engine: &Engine, setup: &Setup, document: &mut Value) -> EndWatch {
        let around = ParentCgroup::make(engine, &setup.cgroups_root, &setup.name, document).await;
        EndWatch { began: seconds(), memory: None, around }
    }

    /// It runs; this is its first process.
    pub fn follow(&mut self, pid: i32) {
        self.memory = MemoryWatch::follow(pid);
    }

    /// The exit code and the container's `HostConfig`. None if it was not an OOM kill.
    pub async fn explain(
        mut self,
        engine: &Engine,
        name: &str,
        config: &Value,
        code: i64,
    ) -> Option<OutOfMemory> {
        let cause = self.oom_cause(engine, name, config, code).await;
        if let Some(around) = self.around {
            around.remove().await;
        }
        cause
    }

    async fn oom_cause(
        &mut self,
        engine: &Engine,
        name: &str,
        config: &Value,
        code: i64,
    ) -> Option<OutOfMemory> {
        let counted = match self.memory.take() {
            Some(watch) => watch.ended().await,
            None => None,
        };
        // It ended before we could look, or the engine was faster.
        let counted = counted.or_else(|| self.around.as_ref()?.killed(config));
        match counted {
            Some(counted) => judge(&counted),
            None => engine_reports_oom(engine, name, code, self.began).await.then(|| read_setup(config)),
        }
    }
}

/// From the counters of the container.
fn judge(counted: &Memory) -> Option<OutOfMemory> {
    let whose = match counted {
        Memory { kills: 0, .. } => return None,
        Memory { stopped: true, .. } => OomCause::Own,
        Memory { peak_bytes, request_bytes, .. } if peak_bytes > request_bytes => OomCause::OthersOverRequest,
        _ => OomCause::OthersWithinRequest,
    };
    Some(OutOfMemory {
        whose,
        message: in_words(whose, &counted.show()),
        peak_bytes: Some(counted.peak_bytes),
    })
}

/// From the engine alone: a container with a limit was at it, one without was killed for the machine.
fn read_setup(config: &Value) -> OutOfMemory {
    let request_bytes = config["MemoryReservation"].as_u64().unwrap_or(0);
    let limit_bytes = config["Memory"].as_u64();
    let (whose, shown) = match limit_bytes {
        Some(peak_bytes) => {
            (OomCause::Own, Memory { request_bytes, limit_bytes, peak_bytes, ..Default::default() }.show())
        }
        None => {
            let shown = format!("Requested: {}MB Limit: Infinity", request_bytes / BYTES_PER_MB);
            (OomCause::OthersOverRequest, shown)
        }
    };
    OutOfMemory { whose, message: in_words(whose, &shown), peak_bytes: limit_bytes }
}

fn in_words(whose: OomCause, shown: &str) -> String {
    let what = match whose {
        OomCause::Own => "Memory limit exceeded",
        OomCause::OthersOverRequest => "Memory request exceeded while the machine ran out of memory",
        OomCause::OthersWithinRequest => "Killed because the machine ran out of memory, within its request",
    };
    format!("{what}: {shown}")
}

/// The engine's own word; where it may have heard of the end before it heard of the kill, what it heard since.
async fn engine_reports_oom(engine: &Engine, name: &str, code: i64, began: u64) -> bool {
    let found = engine.inspect(name).await.ok().flatten();
    if found.is_some_and(|found| found.state.oom_killed) {
        return true;
    }
    code == KILLED_CODE && engine.was_out_of_memory(name, began, seconds()).await.unwrap_or(false)
}

fn seconds() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn oom_kill_messages_name_cause_and_limits() {
        const MB: u64 = BYTES_PER_MB;
        let counted = |kills, stopped, peak: u64| {
            let (request_bytes, limit_bytes) = (64 * MB, Some(128 * MB));
            judge(&Memory { kills, stopped, request_bytes, limit_bytes, peak_bytes: peak * MB })
        };
        let limited = json!({"Memory": 64 * MB, "MemoryReservation": 32 * MB});
        let machine = "Memory request exceeded while the machine ran out of memory";
        let within = "Killed because the machine ran out of memory, within its request";
        let own = "Memory limit exceeded: Requested: 64MB Limit: 128MB Maximum Used: 128MB";
        for (found, expected) in [
            (counted(0, true, 128), None),
            (counted(1, true, 128), Some((OomCause::Own, String::from(own)))),
            (
                counted(1, false, 100),
                Some((
                    OomCause::OthersOverRequest,
                    format!("{machine}: Requested: 64MB Limit: 128MB Maximum Used: 100MB"),
                )),
            ),
            (
                counted(1, false, 60),
                Some((
                    OomCause::OthersWithinRequest,
                    format!("{within}: Requested: 64MB Limit: 128MB Maximum Used: 60MB"),
                )),
            ),
            (
                Some(read_setup(&limited)),
                Some((
                    OomCause::Own,
                    "Memory limit exceeded: Requested: 32MB Limit: 64MB Maximum Used: 64MB".into(),
                )),
            ),
            (
                Some(read_setup(&json!({"MemoryReservation": 32 * MB}))),
                Some((OomCause::OthersOverRequest, format!("{machine}: Requested: 32MB Limit: Infinity"))),
            ),
        ] {
            assert_eq!(found.map(|found| (found.whose, found.message)), expected);
        }
    }
}
