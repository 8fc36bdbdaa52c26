//! Exit statuses in the words of v1.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tepui_client::exit::CommandExit;
use tepui_client::v1::TaskState;

/// `Command exited with status N` or `Command terminated with signal Killed`, as frameworks match on.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Exited(code).to_string(),
        (None, Some(signal)) => {
            CommandExit::Signalled { signal, core_dumped: status.core_dumped() }.to_string()
        }
        (None, None) => format!("Command ended with wait status {}", status.into_raw()),
    }
}

/// The state of a task whose command exited without a kill.
pub fn state(status: ExitStatus) -> TaskState {
    match status.success() {
        true => TaskState::TASK_FINISHED,
        false => TaskState::TASK_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_described() {
        let table = [
            (0, "Command exited with status 0", TaskState::TASK_FINISHED),
            (3 << 8, "Command exited with status 3", TaskState::TASK_FAILED),
            (9, "Command terminated with signal Killed", TaskState::TASK_FAILED),
            (15, "Command terminated with signal Terminated", TaskState::TASK_FAILED),
            (
                11 | 0x80,
                "Command terminated with signal Segmentation fault (core dumped)",
                TaskState::TASK_FAILED,
            ),
            (40, "Command terminated with signal Unknown signal 40", TaskState::TASK_FAILED),
        ];
        for (raw, message, ended) in table {
            let status = ExitStatus::from_raw(raw);
            assert_eq!((describe(status).as_str(), state(status)), (message, ended));
        }
    }
}
