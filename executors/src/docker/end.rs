//! Why a container ended: its exit code, and whether it was for want of memory.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde_json::Value;
use tepui_client::v1::task_status::Reason;
use tepui_docker::{Memory, MemoryWatch};

use super::{Container, seconds};
use crate::command::machine::Ended;

/// What SIGKILL leaves as an exit code, whoever sent it.
const KILLED_CODE: i64 = 128 + 9;

const BYTES_PER_MB: u64 = 1024 * 1024;

/// `began`: when the container was made, in seconds.
pub(super) async fn explain(
    container: &Container,
    code: i64,
    began: u64,
    watch: Option<MemoryWatch>,
) -> Ended {
    let exit = ExitStatus::from_raw(i32::try_from(code & 0xff).unwrap_or(0) << 8);
    let message = format!("Container exited with status {code}");
    if code == 0 {
        return Ended { exit, message, reason: None };
    }
    let counted = match watch {
        Some(watch) => watch.ended().await,
        None => None,
    };
    let why = match counted {
        Some(counted) => judge(&counted),
        // It ended before we could look, or the engine was faster: its own word must do.
        None if is_out_of_memory(container, code, began).await => {
            Some(told(&container.setup.document["HostConfig"]))
        }
        None => None,
    };
    match why {
        Some((reason, why)) => Ended { exit, message: format!("{message}: {why}"), reason },
        None => Ended { exit, message, reason: None },
    }
}

/// What the counters of the container say: the reason, if it has a name, and the same in words.
fn judge(counted: &Memory) -> Option<(Option<Reason>, String)> {
    let shown = counted.show();
    match counted {
        Memory { kills: 0, .. } => None,
        Memory { stopped: true, .. } => Some(over_limit(&shown)),
        Memory { peak_bytes, request_bytes, .. } if peak_bytes > request_bytes => Some(over_request(&shown)),
        _ => {
            Some((None, format!("Killed because the machine ran out of memory, within its request: {shown}")))
        }
    }
}

/// As far as the engine tells: who has a limit was at it, who has none was in the way of others.
fn told(config: &Value) -> (Option<Reason>, String) {
    let request_bytes = config["MemoryReservation"].as_u64().unwrap_or(0);
    match config["Memory"].as_u64() {
        Some(limit) => {
            let limit_bytes = Some(limit);
            over_limit(&Memory { request_bytes, limit_bytes, peak_bytes: limit, ..Default::default() }.show())
        }
        None => over_request(&format!("Requested: {}MB Limit: Infinity", request_bytes / BYTES_PER_MB)),
    }
}

fn over_limit(shown: &str) -> (Option<Reason>, String) {
    (Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY), format!("Memory limit exceeded: {shown}"))
}

fn over_request(shown: &str) -> (Option<Reason>, String) {
    let why = format!("Memory request exceeded while the machine ran out of memory: {shown}");
    (Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED), why)
}

/// The engine's own word; where it may have heard of the end before it heard of the kill, what it heard since.
async fn is_out_of_memory(container: &Container, code: i64, began: u64) -> bool {
    let name = &container.setup.name;
    let found = container.engine.inspect(name).await.ok().flatten();
    if found.is_some_and(|found| found.state.oom_killed) {
        return true;
    }
    code == KILLED_CODE && container.engine.was_out_of_memory(name, began, seconds()).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn ends_for_memory_in_words() {
        const MB: u64 = BYTES_PER_MB;
        let counted = |kills, stopped, peak: u64| {
            let (request_bytes, limit_bytes) = (64 * MB, Some(128 * MB));
            judge(&Memory { kills, stopped, request_bytes, limit_bytes, peak_bytes: peak * MB })
        };
        let limited = json!({"Memory": 64 * MB, "MemoryReservation": 32 * MB});
        let all = [
            counted(0, true, 128),
            counted(1, true, 128),
            counted(1, false, 100),
            counted(1, false, 60),
            Some(told(&limited)),
            Some(told(&json!({"MemoryReservation": 32 * MB}))),
        ];
        let show = |one: &Option<(Option<Reason>, String)>| match one {
            Some((reason, why)) => format!("{reason:?} {why}\n"),
            None => String::from("nothing\n"),
        };
        expect![[r#"
            nothing
            Some(REASON_CONTAINER_LIMITATION_MEMORY) Memory limit exceeded: Requested: 64MB Limit: 128MB Maximum Used: 128MB
            Some(REASON_MEMORY_REQUEST_EXCEEDED) Memory request exceeded while the machine ran out of memory: Requested: 64MB Limit: 128MB Maximum Used: 100MB
            None Killed because the machine ran out of memory, within its request: Requested: 64MB Limit: 128MB Maximum Used: 60MB
            Some(REASON_CONTAINER_LIMITATION_MEMORY) Memory limit exceeded: Requested: 32MB Limit: 64MB Maximum Used: 64MB
            Some(REASON_MEMORY_REQUEST_EXCEEDED) Memory request exceeded while the machine ran out of memory: Requested: 32MB Limit: Infinity
        "#]]
        .assert_eq(&all.iter().map(show).collect::<String>());
    }
}
