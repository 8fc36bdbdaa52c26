//! Why a container ended: its exit code, and whether it was for want of memory.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde_json::Value;
use tepui_client::v1::task_status::Reason;

use super::{Container, seconds};
use crate::command::machine::Ended;

/// What SIGKILL leaves as an exit code, whoever sent it.
const KILLED_CODE: i64 = 128 + 9;

const BYTES_PER_MB: u64 = 1024 * 1024;

/// `began`: when the container was made, in seconds.
pub(super) async fn explain(container: &Container, code: i64, began: u64) -> Ended {
    let exit = ExitStatus::from_raw(i32::try_from(code & 0xff).unwrap_or(0) << 8);
    let message = format!("Container exited with status {code}");
    if code == 0 || !is_out_of_memory(container, code, began).await {
        return Ended { exit, message, reason: None };
    }
    let why = over_limit(&container.setup.document["HostConfig"]);
    let reason = Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY);
    Ended { exit, message: format!("{message}: {why}"), reason }
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

/// The engine kills only who is at its limit, so that is the most it used.
fn over_limit(config: &Value) -> String {
    let mb = |key: &str| {
        config[key].as_u64().map_or_else(|| "Infinity".into(), |bytes| format!("{}MB", bytes / BYTES_PER_MB))
    };
    let (request, limit) = (mb("MemoryReservation"), mb("Memory"));
    format!("Memory limit exceeded: Requested: {request} Limit: {limit} Maximum Used: {limit}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_in_words() {
        let config = json!({"Memory": 64 * BYTES_PER_MB, "MemoryReservation": 32 * BYTES_PER_MB});
        assert_eq!(
            over_limit(&config),
            "Memory limit exceeded: Requested: 32MB Limit: 64MB Maximum Used: 64MB"
        );
    }
}
