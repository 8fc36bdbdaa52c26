//! The termination of a container as a task status.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{Resource, TaskResourceLimitation, value};
use tepui_docker::{OomCause, OutOfMemory};

use crate::command::machine::{Ended, Limited};

const BYTES_PER_MB: u64 = 1024 * 1024;

pub(super) fn ended(code: i64, why: Option<OutOfMemory>) -> Ended {
    let exit = ExitStatus::from_raw(i32::try_from(code & 0xff).unwrap_or(0) << 8);
    let message = format!("Container exited with status {code}");
    let Some(why) = why else { return Ended { exit, message, limited: None } };
    let reason = match why.whose {
        OomCause::Own => Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        OomCause::OthersOverRequest => Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED),
        OomCause::OthersWithinRequest => None,
    };
    let limitation = why.peak_bytes.filter(|_| reason.is_some()).map(limitation);
    let limited = Some(Limited { reason, limitation });
    Ended { exit, message: format!("{message}: {}", why.message), limited }
}

/// So much memory was used when there was no more.
fn limitation(used_bytes: u64) -> TaskResourceLimitation {
    let megabytes = value::Scalar { value: (used_bytes / BYTES_PER_MB) as f64, ..Default::default() };
    let used = Resource {
        name: String::from("mem"),
        r#type: value::Type::SCALAR,
        scalar: megabytes.into(),
        ..Default::default()
    };
    TaskResourceLimitation { resources: vec![used], ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oom_kill_has_a_reason_and_a_limitation() {
        let found = |whose, peak_bytes| {
            let why = OutOfMemory { whose, message: String::from("out"), peak_bytes };
            let ended = ended(137, Some(why));
            assert_eq!(ended.message, "Container exited with status 137: out");
            let limited = ended.limited.expect("it was killed");
            let used = limited.limitation.map(|limitation| limitation.resources[0].scalar.value);
            (limited.reason, used)
        };
        let (limit, request) =
            (Reason::REASON_CONTAINER_LIMITATION_MEMORY, Reason::REASON_MEMORY_REQUEST_EXCEEDED);
        let bytes = Some(64 * BYTES_PER_MB);
        assert_eq!(found(OomCause::Own, bytes), (Some(limit), Some(64.0)));
        assert_eq!(found(OomCause::OthersOverRequest, bytes), (Some(request), Some(64.0)));
        assert_eq!(found(OomCause::OthersOverRequest, None), (Some(request), None));
        assert_eq!(found(OomCause::OthersWithinRequest, bytes), (None, None));
        assert!(ended(1, None).limited.is_none());
    }
}
