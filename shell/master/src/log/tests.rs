//! The line of every transition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use tepui_core_master::{
    AgentLink, AgentRemoval, Config, Effect, Input, Map, Master, Offer, Operation, Registration, Set, Task,
    TaskUpdate, Transition,
};
use tepui_fsm::{Fsm, Item, Mono, Now, Outbox, Wall, unlimited};
use tepui_log::{LogFormat, capture};
use tepui_proto::json;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::mesos::v1::task_status::{Reason, Source};
use tepui_proto::mesos::v1::{TaskState, scheduler};
use tepui_registry::Registry;
use tepui_resources::Resources;
use tepui_types::{AgentId, ConnId, ExecutorId, FrameworkId, OfferId, TaskId};

use super::*;

fn check(transitions: impl IntoIterator<Item = Transition>, expected: Expect) {
    let text = capture(LogFormat::Text, || transitions.into_iter().for_each(log));
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    expected.assert_eq(&lines.join("\n"));
}

fn message<M: json::FromJson + Default>(text: &str) -> M {
    json::from_slice(text.as_bytes()).unwrap()
}

fn agent() -> Arc<Agent> {
    Arc::new(Agent {
        id: AgentId::new("S0"),
        info: Arc::new(message(r#"{"hostname":"host1"}"#)),
        version: "1.12.0".into(),
        pid: "slave(1)@10.0.0.1:5051".into(),
        speaks_tls: false,
        capabilities: Arc::new([]),
        link: AgentLink::Silent { since: Wall(0) },
        deactivated: false,
        drain: None,
        disk_pressure: None,
        unavailability: None,
        inverse_answers: Map::new_sync(),
        registered_at: Wall(0),
        reregistered_at: None,
        total: resources(),
        tasks: Set::new_sync(),
        executors: Map::new_sync(),
        operations: Map::new_sync(),
    })
}

fn resources() -> Resources {
    let list = r#"[{"name":"cpus","type":"SCALAR","scalar":{"value":2}}]"#;
    let info: pb::AgentInfo = message(&format!(r#"{{"hostname":"h","resources":{list}}}"#));
    Resources::from_proto(&info.resources).unwrap()
}

fn ids() -> (FrameworkId, TaskId, AgentId) {
    (FrameworkId::new("F"), TaskId::new("t1"), AgentId::new("S0"))
}

#[test]
fn agent_transitions_are_logged() {
    let registered = |registration| Transition::AgentRegistered { agent: agent(), registration };
    let removed = |agent, removal| Transition::AgentRemoved { agent_id: AgentId::new("S0"), agent, removal };
    let transitions = [
        registered(Registration::New),
        registered(Registration::Reconnected),
        registered(Registration::Returned),
        Transition::AgentDisconnected { agent: agent() },
        removed(Some(agent()), AgentRemoval::Unreachable),
        removed(None, AgentRemoval::Unreachable),
        removed(Some(agent()), AgentRemoval::Gone),
        removed(Some(agent()), AgentRemoval::Removed),
        removed(Some(agent()), AgentRemoval::MachineDown),
        Transition::AgentRejected {
            conn: ConnId(1),
            agent_id: None,
            hostname: "bad\nhost".into(),
            pid: "slave(1)@10.0.0.9:5051".into(),
            reason: "Agent was marked gone by an operator".into(),
        },
        Transition::AgentDrained { agent_id: AgentId::new("S0") },
    ];
    check(
        transitions,
        expect![[r#"
        INFO agent registered agent_id=S0 hostname=host1 pid=slave(1)@10.0.0.1:5051 version=1.12.0 resources=cpus:2 tasks=0
        INFO agent reconnected agent_id=S0 hostname=host1 pid=slave(1)@10.0.0.1:5051 version=1.12.0 resources=cpus:2 tasks=0
        INFO agent returned agent_id=S0 hostname=host1 pid=slave(1)@10.0.0.1:5051 version=1.12.0 resources=cpus:2 tasks=0
        WARN agent disconnected agent_id=S0 hostname=host1 tasks=0
        WARN agent unreachable agent_id=S0 hostname=host1 tasks=0
        WARN agent unreachable agent_id=S0
        INFO agent gone agent_id=S0 hostname=host1 tasks=0
        INFO agent removed agent_id=S0 hostname=host1 tasks=0
        INFO agent removed: its machine is down agent_id=S0 hostname=host1 tasks=0
        WARN agent rejected hostname="bad\nhost" pid=slave(1)@10.0.0.9:5051 reason="Agent was marked gone by an operator"
        INFO agent drained agent_id=S0"#]],
    );
}

#[test]
fn task_transitions_are_logged() {
    let (framework_id, task_id, agent_id) = ids();
    let updated = |state, reason, source, message: Option<&str>, healthy| {
        let (framework_id, task_id, agent_id) = ids();
        let message = message.map(str::to_owned);
        let update = TaskUpdate { framework_id, task_id, agent_id, state, reason, source, message, healthy };
        Transition::TaskUpdated(update)
    };
    let task = Task {
        id: task_id.clone(),
        framework_id: framework_id.clone(),
        agent_id: agent_id.clone(),
        executor_id: Some(ExecutorId::new("e1")),
        bytes: 0,
        is_reported: false,
        task: pb::Task { name: "web server".into(), ..Default::default() },
        resources: resources(),
    };
    let (executor, agent) = (Some(Source::SOURCE_EXECUTOR), Some(Source::SOURCE_AGENT));
    let transitions = [
        Transition::TaskLaunched { task: Arc::new(task) },
        updated(TaskState::TASK_RUNNING, None, executor, None, Some(true)),
        updated(
            TaskState::TASK_FAILED,
            Some(Reason::REASON_COMMAND_EXECUTOR_FAILED),
            executor,
            Some("Command exited with status 1\n2026 ERROR forged"),
            None,
        ),
        updated(TaskState::TASK_FINISHED, None, executor, None, None),
        updated(
            TaskState::TASK_GONE,
            Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY),
            agent,
            Some("Memory limit exceeded"),
            None,
        ),
        updated(TaskState::TASK_UNREACHABLE, Some(Reason::REASON_AGENT_REMOVED), None, None, None),
        Transition::TaskKill { framework_id, task_id, agent_id },
    ];
    check(
        transitions,
        expect![[r#"
        INFO task launched task_id=t1 framework_id=F agent_id=S0 executor_id=e1 name="web server" resources=cpus:2
        INFO task updated task_id=t1 framework_id=F agent_id=S0 state=TASK_RUNNING healthy=true
        INFO task terminated task_id=t1 framework_id=F agent_id=S0 state=TASK_FAILED reason=REASON_COMMAND_EXECUTOR_FAILED source=SOURCE_EXECUTOR status_message="Command exited with status 1\n2026 ERROR forged"
        INFO task terminated task_id=t1 framework_id=F agent_id=S0 state=TASK_FINISHED source=SOURCE_EXECUTOR
        WARN task terminated task_id=t1 framework_id=F agent_id=S0 state=TASK_GONE reason=REASON_CONTAINER_LIMITATION_MEMORY source=SOURCE_AGENT status_message="Memory limit exceeded"
        WARN task unreachable task_id=t1 framework_id=F agent_id=S0 state=TASK_UNREACHABLE reason=REASON_AGENT_REMOVED
        INFO task kill requested task_id=t1 framework_id=F agent_id=S0"#]],
    );
}

#[test]
fn offer_executor_and_operation_transitions_are_logged() {
    let (framework_id, _, agent_id) = ids();
    let offer = Offer {
        id: OfferId::new("O3"),
        framework_id: framework_id.clone(),
        agent_id: agent_id.clone(),
        role: "web".into(),
        resources: resources(),
        offered_at: Wall(0),
    };
    let operation = Arc::new(Operation {
        uuid: [1; 16],
        framework_id: Some(framework_id.clone()),
        agent_id: agent_id.clone(),
        operation: message(
            r#"{"info":{"type":"RESERVE","id":{"value":"op1"}},"latest_status":{"state":"OPERATION_PENDING"},"uuid":{"value":"AAAAAAAAAAAAAAAAAAAAAA=="}}"#,
        ),
    });
    let updated = |state, message: Option<&str>| Transition::OperationUpdated {
        operation: operation.clone(),
        state,
        message: message.map(str::to_owned),
    };
    let executor_id = ExecutorId::new("e1");
    let transitions = [
        Transition::OfferRescinded { offer: Arc::new(offer) },
        Transition::ExecutorLaunched {
            framework_id: framework_id.clone(),
            executor_id: executor_id.clone(),
            agent_id: agent_id.clone(),
        },
        Transition::ExecutorTerminated {
            framework_id: framework_id.clone(),
            executor_id,
            agent_id,
            status: 256,
        },
        updated(pb::OperationState::OPERATION_PENDING, None),
        updated(pb::OperationState::OPERATION_FINISHED, None),
        updated(pb::OperationState::OPERATION_FAILED, Some("no such resources")),
        Transition::OperationRejected {
            framework_id,
            operation_id: None,
            kind: OperationType::CREATE,
            reason: "the volume exists".into(),
        },
    ];
    check(
        transitions,
        expect![[r#"
        INFO offer rescinded offer_id=O3 framework_id=F agent_id=S0 role=web resources=cpus:2
        INFO executor launched executor_id=e1 framework_id=F agent_id=S0
        INFO executor terminated executor_id=e1 framework_id=F agent_id=S0 status=256
        INFO operation updated operation_id=op1 operation=RESERVE framework_id=F agent_id=S0 state=OPERATION_PENDING
        INFO operation updated operation_id=op1 operation=RESERVE framework_id=F agent_id=S0 state=OPERATION_FINISHED
        WARN operation updated operation_id=op1 operation=RESERVE framework_id=F agent_id=S0 state=OPERATION_FAILED status_message="no such resources"
        WARN operation rejected operation=CREATE framework_id=F reason="the volume exists""#]],
    );
}

#[test]
fn operator_calls_are_logged() {
    let call = |text: &str, rejection: Option<&str>| Transition::OperatorCall {
        principal: Some("ops".into()),
        call: Box::new(message(text)),
        rejection: rejection.map(str::to_owned),
    };
    let reserved = r#"{"name":"cpus","type":"SCALAR","scalar":{"value":2},
        "reservations":[{"type":"DYNAMIC","role":"web"}]}"#;
    let transitions = [
        call(
            r#"{"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"web","weight":2.5},{"role":"db","weight":1}]}}"#,
            None,
        ),
        call(
            r#"{"type":"UPDATE_QUOTA","update_quota":{"quota_configs":[{"role":"web",
                "guarantees":{"cpus":{"value":4}},"limits":{"cpus":{"value":8}}}]}}"#,
            None,
        ),
        call(r#"{"type":"REMOVE_QUOTA","remove_quota":{"role":"web"}}"#, Some("Role 'web' has no quota")),
        call(
            &format!(
                r#"{{"type":"RESERVE_RESOURCES","reserve_resources":{{"agent_id":{{"value":"S0"}},"resources":[{reserved}]}}}}"#
            ),
            None,
        ),
        call(r#"{"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"S0"}}}"#, None),
        call(r#"{"type":"DEACTIVATE_AGENT","deactivate_agent":{"agent_id":{"value":"S0"}}}"#, None),
        call(r#"{"type":"REACTIVATE_AGENT","reactivate_agent":{"agent_id":{"value":"S0"}}}"#, None),
        call(r#"{"type":"MARK_AGENT_GONE","mark_agent_gone":{"agent_id":{"value":"S0"}}}"#, None),
        call(
            r#"{"type":"START_MAINTENANCE","start_maintenance":{"machines":[{"hostname":"h1","ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}}"#,
            None,
        ),
        call(r#"{"type":"TEARDOWN","teardown":{"framework_id":{"value":"F"}}}"#, None),
    ];
    check(
        transitions,
        expect![[r#"
            INFO weights updated principal=ops roles="web=2.5,db=1"
            INFO quota updated principal=ops roles="web guarantee cpus:4 limit cpus:8"
            WARN operator call rejected principal=ops call=REMOVE_QUOTA roles=web reason="Role 'web' has no quota"
            INFO resources reserved principal=ops agent_id=S0 resources="cpus(reservations: [(DYNAMIC,web)]):2"
            INFO agent drain started principal=ops agent_id=S0
            INFO agent deactivated principal=ops agent_id=S0
            INFO agent reactivated principal=ops agent_id=S0
            INFO agent marked gone principal=ops agent_id=S0
            INFO maintenance started principal=ops machines=h1/10.0.0.1,10.0.0.2
            INFO framework torn down principal=ops framework_id=F"#]],
    );
}

/// Frameworks by a machine of their own: what they are made of is its business.
#[test]
fn framework_transitions_are_logged() {
    let mut play = Play::new();
    let info = r#""user":"alice","name":"web","roles":["web"],"capabilities":[{"type":"MULTI_ROLE"}]"#;
    let subscribe = |rest: &str| {
        format!(
            r#"{{"type":"SUBSCRIBE","subscribe":{{"framework_info":{{{info}{rest}}}}},"framework_id":{{"value":"F"}}}}"#
        )
    };
    let known = r#","id":{"value":"F"},"failover_timeout":60"#;
    play.call(1, &subscribe(known));
    play.step(Input::SchedulerClosed { conn: ConnId(1) });
    play.call(2, &subscribe(known));
    play.step(Input::SchedulerClosed { conn: ConnId(2) });
    play.pass(Duration::from_secs(61));
    play.call(3, &subscribe(known));
    let unnamed = format!(r#"{{"type":"SUBSCRIBE","subscribe":{{"framework_info":{{{info}}}}}}}"#);
    play.call(4, &unnamed);
    play.step(Input::SchedulerClosed { conn: ConnId(4) });
    check(
        play.transitions,
        expect![[r#"
        INFO framework subscribed framework_id=F name=web user=alice roles=web principal=p checkpoint=false failover_timeout_seconds=60 tasks=0
        WARN framework disconnected framework_id=F name=web tasks=0 failover_timeout_seconds=60
        INFO framework resubscribed framework_id=F name=web user=alice roles=web principal=p checkpoint=false failover_timeout_seconds=60 tasks=0
        WARN framework disconnected framework_id=F name=web tasks=0 failover_timeout_seconds=60
        INFO framework removed framework_id=F name=web tasks=0 cause="failover timeout"
        WARN framework rejected framework_id=F name=web user=alice principal=p reason="Framework has been removed"
        INFO framework subscribed framework_id=m-0000 name=web user=alice roles=web principal=p checkpoint=false failover_timeout_seconds=0 tasks=0
        INFO framework disconnected framework_id=m-0000 name=web tasks=0
        INFO framework removed framework_id=m-0000 name=web tasks=0 cause="failover timeout""#]],
    );
}

struct Play {
    master: Master,
    now: Now,
    transitions: Vec<Transition>,
}

impl Play {
    fn new() -> Self {
        let now = Now { mono: Mono(0), wall: Wall(0) };
        let mut config = Config::default();
        config.master_info.id = "m".into();
        Self { master: Master::new(config, Registry::default(), now), now, transitions: Vec::new() }
    }

    fn call(&mut self, conn: u64, text: &str) {
        let call: Box<scheduler::Call> = Box::new(message(text));
        self.step(Input::Scheduler {
            conn: ConnId(conn),
            stream_id: None,
            principal: Some("p".into()),
            call,
        });
    }

    fn pass(&mut self, time: Duration) {
        self.now.mono = self.now.mono + time;
        let mut out = Outbox::new();
        self.master.settle(self.now, &mut unlimited, &mut out);
        self.collect(out);
    }

    fn step(&mut self, input: Input) {
        let mut out = Outbox::new();
        self.master.step(self.now, input, &mut out);
        self.collect(out);
    }

    fn collect(&mut self, mut out: Outbox<Master>) {
        self.transitions.extend(out.take().into_iter().filter_map(|item| match item {
            Item::Effect(Effect::Transition(transition)) => Some(*transition),
            Item::Effect(_) | Item::Record(_) => None,
        }));
    }
}

#[test]
fn long_name_lists_are_truncated_with_a_count() {
    let roles: Vec<String> = (0..20).map(|number| format!(r#"{{"role":"r{number}","weight":1}}"#)).collect();
    let text =
        format!(r#"{{"type":"UPDATE_WEIGHTS","update_weights":{{"weight_infos":[{}]}}}}"#, roles.join(","));
    let call = Transition::OperatorCall { principal: None, call: Box::new(message(&text)), rejection: None };
    let line = capture(LogFormat::Text, || log(call));
    assert!(line.contains("r15=1,… (4 more)"), "{line}");
    let distinct: BTreeSet<&str> = line.split(',').collect();
    assert_eq!(distinct.len(), 17);
}
