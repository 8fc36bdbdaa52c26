//! Words for tests: statuses and moments as short text.

use std::time::Duration;

use tepui_client::v1::TaskStatus;

use crate::machine::Moment;

/// The parts of a status that tests compare.
pub fn status_text(status: &TaskStatus) -> String {
    let mut text = format!("update {} {:?}", status.task_id.value, status.state);
    if let Some(reason) = status.reason {
        text += &format!(" {reason:?}");
    }
    if let Some(healthy) = status.healthy {
        text += &format!(" healthy={healthy}");
    }
    if let Some(check) = status.check_status.as_option() {
        let value = (check.command.exit_code, check.http.status_code, check.tcp.succeeded);
        text += &format!(" check={value:?}");
    }
    if let Some(container) = status.container_status.container_id.as_option() {
        text += &format!(" in {}.{}", container.parent.value, container.value);
    }
    if let Some(message) = &status.message {
        text += &format!(" '{message}'");
    }
    text
}

/// A moment whose ids count up: the first is sixteen bytes of 1.
pub fn at<R>(now: Duration, ids: &mut u8, step: impl FnOnce(&mut Moment<'_>) -> R) -> R {
    let mut uuid = || {
        *ids += 1;
        [*ids; 16]
    };
    step(&mut Moment { now, uuid: &mut uuid })
}
