//! How a container ended, in the words of a task's end.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tepui_client::v1::task_status::Reason;
use tepui_docker::{OutOfMemory, Whose};

use crate::command::machine::Ended;

pub(super) fn ended(code: i64, why: Option<OutOfMemory>) -> Ended {
    let exit = ExitStatus::from_raw(i32::try_from(code & 0xff).unwrap_or(0) << 8);
    let message = format!("Container exited with status {code}");
    let Some(why) = why else { return Ended { exit, message, reason: None } };
    let reason = match why.whose {
        Whose::Own => Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        Whose::OthersOverRequest => Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED),
        Whose::OthersWithinRequest => None,
    };
    Ended { exit, message: format!("{message}: {}", why.message), reason }
}
