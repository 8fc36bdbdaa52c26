//! The line of every transition.

use std::sync::Arc;

use expect_test::{Expect, expect};
use tepui_core_agent::ContainerStage;
use tepui_log::{LogFormat, capture};
use tepui_proto::json;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::{Reason, Source};
use tepui_types::{ExecutorId, FrameworkId, TaskId};

use super::*;

fn check(transitions: impl IntoIterator<Item = Transition>, expected: Expect) {
    let text = capture(LogFormat::Text, || transitions.into_iter().for_each(log));
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    expected.assert_eq(&lines.join("\n"));
}

fn message<M: json::FromJson + Default>(text: &str) -> M {
    json::from_slice(text.as_bytes()).unwrap()
}

fn ids() -> (FrameworkId, ExecutorId, TaskId) {
    (FrameworkId::new("F"), ExecutorId::new("e1"), TaskId::new("t1"))
}

#[test]
fn agent_and_master_transitions_are_logged() {
    let master: Arc<pb::MasterInfo> = Arc::new(message(
        r#"{"id":"m","ip":1,"port":5050,"address":{"hostname":"master1","ip":"10.0.0.1","port":5050}}"#,
    ));
    let lost = |cause| Transition::Disconnected { master: master.clone(), cause };
    let transitions = [
        Transition::Recovered { alive: 2, terminated: 1 },
        Transition::Registered { agent_id: "S0".into(), master: master.clone() },
        lost(Disconnection::Broken("connection reset".into())),
        lost(Disconnection::Silence),
        Transition::DrainStarted,
        Transition::DrainCompleted,
        Transition::Terminating,
    ];
    check(
        transitions,
        expect![[r#"
        INFO agent recovered containers_alive=2 containers_terminated=1
        INFO registered with master agent_id=S0 master_id=m master=master1:5050
        WARN disconnected from master master_id=m master=master1:5050 reason="connection reset"
        WARN disconnected from master master_id=m master=master1:5050 reason="no message within the silence timeout"
        INFO drain started
        INFO drain completed
        INFO agent terminating: all tasks are killed"#]],
    );
}

#[test]
fn framework_task_and_executor_transitions_are_logged() {
    let (framework_id, executor_id, task_id) = ids();
    let updated = |state, reason, message: Option<&str>| {
        let (framework_id, _, task_id) = ids();
        let (source, message) = (Some(Source::SOURCE_EXECUTOR), message.map(str::to_owned));
        let healthy = (state == TaskState::TASK_RUNNING).then_some(false);
        Transition::TaskUpdated(TaskUpdate { framework_id, task_id, state, reason, source, message, healthy })
    };
    let received = |pending| {
        let (framework_id, executor_id, task_id) = ids();
        Transition::TaskReceived { framework_id, executor_id, task_id, pending }
    };
    let info = Arc::new(message(r#"{"name":"web","user":"alice","checkpoint":true}"#));
    let transitions = [
        Transition::FrameworkAdded { framework_id: framework_id.clone(), info },
        received(false),
        received(true),
        Transition::ExecutorLaunched {
            framework_id: framework_id.clone(),
            executor_id: executor_id.clone(),
            container_id: ContainerId::root("c1"),
            user: Some("alice".into()),
            sandbox: "/work/sandbox".into(),
        },
        Transition::ExecutorSubscribed {
            framework_id: framework_id.clone(),
            executor_id: executor_id.clone(),
        },
        updated(TaskState::TASK_RUNNING, Some(Reason::REASON_TASK_HEALTH_CHECK_STATUS_UPDATED), None),
        Transition::TaskKill { framework_id: framework_id.clone(), task_id },
        updated(TaskState::TASK_KILLED, None, Some("Command terminated with signal Terminated")),
        updated(TaskState::TASK_LOST, Some(Reason::REASON_EXECUTOR_TERMINATED), Some("Abnormal")),
        Transition::ExecutorDisconnected {
            framework_id: framework_id.clone(),
            executor_id: executor_id.clone(),
        },
        Transition::ExecutorTerminated {
            framework_id: framework_id.clone(),
            executor_id,
            status: Some(0),
            reason: None,
            message: None,
        },
        Transition::FrameworkTerminating { framework_id: framework_id.clone() },
        Transition::FrameworkRemoved { framework_id },
    ];
    check(
        transitions,
        expect![[r#"
        INFO framework added framework_id=F name=web user=alice checkpoint=true
        INFO task received task_id=t1 framework_id=F executor_id=e1
        INFO task received: pending until borrowers release resources task_id=t1 framework_id=F executor_id=e1
        INFO executor launched executor_id=e1 framework_id=F container_id=c1 user=alice sandbox=/work/sandbox
        INFO executor subscribed executor_id=e1 framework_id=F
        INFO task updated task_id=t1 framework_id=F state=TASK_RUNNING reason=REASON_TASK_HEALTH_CHECK_STATUS_UPDATED healthy=false
        INFO task kill requested task_id=t1 framework_id=F
        INFO task terminated task_id=t1 framework_id=F state=TASK_KILLED source=SOURCE_EXECUTOR status_message="Command terminated with signal Terminated"
        WARN task terminated task_id=t1 framework_id=F state=TASK_LOST reason=REASON_EXECUTOR_TERMINATED source=SOURCE_EXECUTOR status_message=Abnormal
        DEBUG executor disconnected executor_id=e1 framework_id=F
        INFO executor terminated executor_id=e1 framework_id=F status=0
        INFO framework shutting down framework_id=F
        INFO framework removed framework_id=F"#]],
    );
}

#[test]
fn container_and_operation_transitions_are_logged() {
    let container_id = ContainerId::root("c1");
    let container = Container {
        id: container_id.clone(),
        sandbox: "/work/sandbox".into(),
        stage: ContainerStage::Launching,
        is_session: true,
    };
    let termination = Termination {
        status: Some(9),
        reason: Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        message: Some("Memory limit exceeded".into()),
        ..Default::default()
    };
    let operation = |state: &str| Transition::OperationUpdated {
        operation: Arc::new(message(&format!(
            r#"{{"framework_id":{{"value":"F"}},"info":{{"type":"CREATE","id":{{"value":"op1"}}}},
               "latest_status":{{"state":"{state}","message":"because"}},"uuid":{{"value":"AAAAAAAAAAAAAAAAAAAAAA=="}}}}"#
        ))),
    };
    let transitions = [
        Transition::ContainerRequested { container: Arc::new(container) },
        Transition::ContainerLaunched { container_id: container_id.clone(), pid: 42 },
        Transition::ContainerLaunchFailed {
            container_id: container_id.clone(),
            stage: LaunchStage::Fetch,
            message: "cannot fetch https://me:secret@host/x".into(),
        },
        Transition::ContainerUpdateFailed { container_id: container_id.clone(), message: "busy".into() },
        Transition::ContainerTerminated { container_id, termination: Arc::new(termination) },
        operation("OPERATION_FINISHED"),
        operation("OPERATION_FAILED"),
    ];
    check(
        transitions,
        expect![[r#"
        INFO container requested container_id=c1 session=true sandbox=/work/sandbox
        INFO container launched container_id=c1 pid=42
        WARN container launch failed container_id=c1 stage=Fetch reason="cannot fetch https://***@host/x"
        WARN container resources cannot be updated container_id=c1 reason=busy
        INFO container terminated container_id=c1 status=9 reason=REASON_CONTAINER_LIMITATION_MEMORY status_message="Memory limit exceeded"
        INFO operation applied operation_id=op1 operation=CREATE framework_id=F state=OPERATION_FINISHED
        WARN operation failed operation_id=op1 operation=CREATE framework_id=F state=OPERATION_FAILED status_message=because"#]],
    );
}
