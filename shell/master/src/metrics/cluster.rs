//! `master/…`: agents, frameworks, tasks, resources and operations of the whole cluster.

use tepui_core_master::{AgentLink, Counter, FrameworkLink, State};
use tepui_http::{Group, Metrics};
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::mesos::v1::{OperationState, TaskState};
use tepui_resources::{Name, Quantities, Resources};

use super::names::{ACTIVE_TASKS, OPERATION_STATES, OPERATIONS, TERMINAL_TASKS, legacy};
use crate::index::Index;
use crate::roles::Roles;
use crate::slack;

/// v1 has them and never counts them.
const NEVER: [&str; 3] = [
    "master/slave_shutdowns_scheduled",
    "master/slave_shutdowns_completed",
    "master/slave_shutdowns_canceled",
];

pub(super) fn add(metrics: &mut Metrics, state: &State, index: &Index<'_>, roles: &Roles, total: &Resources) {
    for counter in Counter::ALL {
        metrics.counter(format!("master/{}", counter.name()), state.counters.get(*counter));
    }
    NEVER.into_iter().for_each(|name| metrics.counter(name, 0));
    agents(metrics, state);
    frameworks(metrics, state);
    tasks(metrics, state);
    resources(metrics, state, index, &roles.used, total);
    operations(metrics, state);
}

fn agents(metrics: &mut Metrics, state: &State) {
    let all = state.agents.size() as f64;
    let (mut active, mut connected, mut disk_pressure) = (0.0, 0.0, 0.0);
    for agent in state.agents.values() {
        active += f64::from(agent.is_active());
        connected += f64::from(matches!(agent.link, AgentLink::Connected { .. }));
        disk_pressure += f64::from(agent.disk_pressure.is_some());
    }
    metrics.gauge("master/slaves_connected", connected);
    metrics.gauge("master/slaves_disconnected", all - connected);
    metrics.gauge("master/slaves_active", active);
    metrics.gauge("master/slaves_inactive", all - active);
    metrics.gauge("master/slaves_disk_pressure", disk_pressure);
    metrics.gauge("master/slaves_unreachable", state.unreachable_agents.size() as f64);
}

fn frameworks(metrics: &mut Metrics, state: &State) {
    let connected = |link: &FrameworkLink| matches!(link, FrameworkLink::Connected { .. });
    let all = state.frameworks.size() as f64;
    let connected = state.frameworks.values().filter(|framework| connected(&framework.link)).count() as f64;
    metrics.gauge("master/frameworks_connected", connected);
    metrics.gauge("master/frameworks_disconnected", all - connected);
    metrics.gauge("master/frameworks_active", connected);
    metrics.gauge("master/frameworks_inactive", all - connected);
    metrics.gauge("master/outstanding_offers", state.offers.size() as f64);
    let principals: std::collections::BTreeSet<&str> =
        state.frameworks.values().filter_map(|framework| framework.info.principal.as_deref()).collect();
    for principal in principals {
        let group = Group {
            path: format!("frameworks/{principal}/"),
            name: "frameworks",
            labels: vec![("principal", principal.to_owned())],
        };
        // v1 counts the messages of its old drivers here, which we do not have.
        metrics.within(group, |metrics| {
            metrics.counter("messages_received", 0);
            metrics.counter("messages_processed", 0);
        });
    }
}

fn tasks(metrics: &mut Metrics, state: &State) {
    let tallies = || state.frameworks.keys().map(|id| state.tallies.framework(id));
    for (of, name) in ACTIVE_TASKS.iter() {
        let count: u64 = match of {
            TaskState::TASK_UNREACHABLE => {
                state.frameworks.values().map(|framework| framework.unreachable_tasks.len() as u64).sum()
            }
            TaskState::TASK_UNKNOWN => continue,
            _ => tallies().map(|tally| tally.live.get(*of)).sum(),
        };
        metrics.gauge(plural(name), count as f64);
    }
    for (ended, name) in TERMINAL_TASKS.iter() {
        metrics.counter(plural(name), state.counters.tasks.get(*ended));
    }
    for ((ended, source, reason), count) in state.counters.reasons.iter() {
        metrics.counter(format!("master/{}/{}/{}", legacy(ended), legacy(source), legacy(reason)), count);
    }
}

/// `task_running` as `master/tasks_running`.
fn plural(name: &str) -> String {
    format!("master/tasks_{}", name.trim_start_matches("task_"))
}

/// Revocable resources are the agents' estimates (usage slack) and reserved resources that owners leave unused
/// (allocation slack): borrowers use both kinds, so the total counts both.
fn resources(metrics: &mut Metrics, state: &State, index: &Index<'_>, used: &Resources, total: &Resources) {
    let mut revocable = total.revocable().quantities();
    for agent in state.agents.values() {
        let lendable = slack::lendable(state, &agent.total);
        if !lendable.is_empty() {
            revocable += &slack::idle(lendable, index.agent(&agent.id).used).quantities();
        }
    }
    let parts = [
        ("", total.non_revocable().quantities(), used.non_revocable().quantities()),
        ("_revocable", revocable, used.revocable().quantities()),
    ];
    for name in [Name::Cpus, Name::Gpus, Name::Mem, Name::Disk] {
        for (kind, total, used) in &parts {
            let amount = |quantities: &Quantities| quantities.get(&name).to_f64();
            let (total, used) = (amount(total), amount(used));
            metrics.gauge(format!("master/{name}{kind}_total"), total);
            metrics.gauge(format!("master/{name}{kind}_used"), used);
            metrics
                .gauge(format!("master/{name}{kind}_percent"), if total > 0.0 { used / total } else { 0.0 });
        }
    }
}

/// Of each kind and of all kinds: those under way as they are now, those that ended as they were counted.
fn operations(metrics: &mut Metrics, state: &State) {
    let known: Vec<(OperationType, OperationState)> = state
        .agents
        .values()
        .flat_map(|agent| agent.operations.values())
        .map(|one| (one.operation.info.r#type.unwrap_or_default(), one.operation.latest_status.state))
        .collect();
    let kinds = OPERATIONS.iter().filter(|(kind, _)| !is_launch(*kind));
    let named = kinds.map(|(kind, name)| (Some(*kind), format!("master/operations/{name}")));
    for (kind, path) in named.chain([(None, "master/operations".to_owned())]) {
        let wanted = |of: OperationType| kind.is_none_or(|kind| kind == of);
        let now = known.iter().filter(|(of, _)| wanted(*of));
        metrics.gauge(format!("{path}/total"), now.clone().count() as f64);
        for (operation_state, name) in OPERATION_STATES {
            let ended = state.counters.operations.iter();
            let ended = ended.filter(|((of, state), _)| wanted(*of) && *state == operation_state);
            let under_way = now.clone().filter(|(_, state)| *state == operation_state).count();
            match operation_state {
                OperationState::OPERATION_PENDING
                | OperationState::OPERATION_RECOVERING
                | OperationState::OPERATION_UNREACHABLE => {
                    metrics.gauge(format!("{path}/{name}"), under_way as f64);
                }
                _ => metrics.counter(format!("{path}/{name}"), ended.map(|(_, count)| count).sum()),
            }
        }
    }
}

fn is_launch(kind: OperationType) -> bool {
    matches!(kind, OperationType::LAUNCH | OperationType::LAUNCH_GROUP)
}
