//! Validation of an executor's calls.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor::{Call, call};
use tepui_proto::mesos::v1::task_status::Source;
use tepui_types::Rejection;

const UUID_BYTES: usize = 16;

pub(super) fn validate(call: &Call) -> Result<(), Rejection> {
    problem(call).map_or(Ok(()), |why| {
        Err(Rejection::bad_request(format!("Failed to validate Executor::Call: {why}")))
    })
}

fn problem(call: &Call) -> Option<String> {
    let missing = |name: &str| Some(format!("Expecting '{name}' to be present"));
    match call.r#type {
        None => missing("type"),
        Some(call::Type::SUBSCRIBE) if !call.subscribe.is_set() => missing("subscribe"),
        Some(call::Type::UPDATE) if !call.update.is_set() => missing("update"),
        Some(call::Type::UPDATE) => update_problem(call),
        Some(call::Type::MESSAGE) if !call.message.is_set() => missing("message"),
        Some(call::Type::SUBSCRIBE | call::Type::MESSAGE | call::Type::HEARTBEAT | call::Type::UNKNOWN) => {
            None
        }
    }
}

fn update_problem(call: &Call) -> Option<String> {
    let status = &call.update.status;
    let (executor, framework) = (&call.executor_id.value, &call.framework_id.value);
    let Some(uuid) = &status.uuid else { return Some("Expecting 'uuid' to be present".into()) };
    if uuid.len() != UUID_BYTES {
        return Some(format!("Not a valid UUID: expecting {UUID_BYTES} bytes, got {}", uuid.len()));
    }
    if let Some(other) = status.executor_id.as_option().filter(|other| other.value != *executor) {
        return Some(format!(
            "ExecutorID in Call: {executor} does not match ExecutorID in TaskStatus: {}",
            other.value
        ));
    }
    if status.source != Some(Source::SOURCE_EXECUTOR) {
        return Some(format!(
            "Received Call from executor {executor} of framework {framework} with invalid source, expecting \
             'SOURCE_EXECUTOR'"
        ));
    }
    if status.state == TaskState::TASK_STAGING {
        return Some(format!(
            "Received TASK_STAGING from executor {executor} of framework {framework} which is not allowed"
        ));
    }
    check_status_problem(status.check_status.as_option()?)
}

/// The result of a check is that of the check's kind and of no other.
fn check_status_problem(status: &pb::CheckStatusInfo) -> Option<String> {
    use pb::check_info::Type;
    let (command, http, tcp) = (status.command.is_set(), status.http.is_set(), status.tcp.is_set());
    let expected = match status.r#type {
        None => return Some("CheckStatusInfo must specify 'type'".into()),
        Some(Type::UNKNOWN) => return Some("'UNKNOWN' is not a valid check's status type".into()),
        Some(Type::COMMAND) => ("command", [command, !http, !tcp]),
        Some(Type::HTTP) => ("http", [!command, http, !tcp]),
        Some(Type::TCP) => ("tcp", [!command, !http, tcp]),
    };
    match expected {
        (_, [true, true, true]) => None,
        (name, _) => Some(format!("Expecting only '{name}' to be set in the check's status")),
    }
}
