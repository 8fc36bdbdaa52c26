//! The life of a framework: connected, disconnected, recovered, removed.
//!
//! Fed by SUBSCRIBE, the end of its stream, TEARDOWN and the failover timer. A framework whose stream ends keeps its
//! tasks until its failover timeout has passed.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::OfferConstraints;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_registry::Operation as Record;
use tepui_types::{AgentId, ConnId, ExecutorId, FrameworkId, TaskId, TaskStateExt, is_root};

use crate::Effect;
use crate::entities::{executor, offer, operation, task};
use crate::master::{Master, Out};
use crate::rules::allocator_spec::Terms;
use crate::rules::{allocator_spec, checks};
use crate::state::notice;
use crate::state::status::Verdict;
use crate::state::transition::{FrameworkRemoval, TaskUpdate, Transition};
use crate::state::{Framework, FrameworkLink, Map, Recent, Set, roles_of};
use crate::values::event::to_agent;
use crate::values::timers::Timer;

/// A scheduler's request when it subscribes or updates its framework.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) info: pb::FrameworkInfo,
    pub(crate) suppressed: Vec<String>,
    pub(crate) constraints: Option<OfferConstraints>,
}

/// Whether a framework may subscribe like this; the first thing that is wrong if not.
pub(crate) fn check(master: &Master, subscription: &Subscription) -> Result<Terms, String> {
    let info = &subscription.info;
    checks::framework_info(info)?;
    let roles = roles_of(info);
    if let Some(allowed) = &master.config.roles
        && let Some(role) = roles.iter().find(|role| *role != "*" && !allowed.contains(role))
    {
        return Err(format!("Role '{role}' is not present in the master's --roles"));
    }
    if is_root(&info.user) && !master.config.root_submissions {
        // An empty user is the agent's own.
        return Err("User 'root' is not allowed to run frameworks without --root_submissions set".into());
    }
    if master.state.completed_frameworks.contains(&FrameworkId::from(&*info.id)) {
        return Err("Framework has been removed".into());
    }
    if let Some(role) = subscription.suppressed.iter().find(|role| !roles.contains(role)) {
        return Err(format!("Suppressed role '{role}' is not among the framework's roles"));
    }
    let compiled = allocator_spec::constraints(subscription.constraints.as_ref(), &roles)?;
    Ok(Terms {
        suppressed: subscription.suppressed.iter().cloned().collect(),
        constraints: subscription.constraints.clone().map(Arc::new),
        compiled,
    })
}

/// Gives a known framework a new description and new terms. Offers in roles it left are rescinded.
pub(crate) fn replace(
    master: &mut Master,
    id: &FrameworkId,
    info: pb::FrameworkInfo,
    terms: Terms,
    out: &mut Out,
) {
    let Some(framework) = master.framework_mut(id) else { return };
    framework.info = Arc::new(pb::FrameworkInfo { id: id.to_proto().into(), ..info });
    *framework = terms.on(framework.clone());
    let framework = framework.clone();
    offer::rescind_roles_left(master, &framework, out);
    master.allocator.update_framework(allocator_spec::framework(&framework, terms));
}

/// Sends the framework's new description to operators, and to agents with its tasks.
pub(crate) fn announce(master: &Master, id: &FrameworkId, out: &mut Out) {
    let Some(framework) = master.framework(id) else { return };
    master.notify(|| notice::framework_updated(framework), out);
    for agent_id in master.footprint.get(id).into_iter().flat_map(|on| on.keys()) {
        master.send_to_agent(agent_id, to_agent::update_framework(&framework.info), out);
    }
}

/// A framework without tasks.
pub(crate) fn fresh(now: Now, id: FrameworkId, info: pb::FrameworkInfo, link: FrameworkLink) -> Framework {
    Framework {
        info: Arc::new(pb::FrameworkInfo { id: id.to_proto().into(), ..info }),
        id,
        link,
        registered_at: now.wall,
        reregistered_at: None,
        unregistered_at: None,
        suppressed_roles: Set::new_sync(),
        offer_constraints: None,
        tasks: Map::new_sync(),
        task_bytes: 0,
        unreachable_tasks: Recent::new(),
        completed_tasks: Recent::new(),
        shares_cgroups: Recent::new(),
    }
}

/// Adds a framework that is reported by agents only: it has tasks, but no scheduler is subscribed.
pub(crate) fn recover(master: &mut Master, now: Now, info: pb::FrameworkInfo, out: &mut Out) {
    let id = FrameworkId::from(&*info.id);
    let framework = fresh(now, id.clone(), info, FrameworkLink::Recovered);
    insert(master, framework, Terms::default(), out);
    if let Some(framework) = master.framework(&id).cloned() {
        Master::log(Transition::FrameworkRecovered { framework }, out);
    }
}

/// Adds a framework and notifies the allocator and operators.
pub(crate) fn insert(master: &mut Master, framework: Framework, terms: Terms, out: &mut Out) {
    master.changed = true;
    let mut framework = terms.on(framework);
    for (executor, shares) in master.isolations.take(&framework.id) {
        task::record_isolation(&mut framework, &executor, shares);
    }
    master.allocator.add_framework(allocator_spec::framework(&framework, terms));
    master.notify(|| notice::framework_added(&framework), out);
    master.state.frameworks.insert_mut(framework.id.clone(), Arc::new(framework));
}

/// A scheduler's stream ended, if it still was the framework's.
pub(crate) fn stream_ended(master: &mut Master, now: Now, conn: ConnId, out: &mut Out) {
    let Some(id) = master.schedulers.remove(&conn) else { return };
    master.timers.clear(&Timer::Heartbeat(conn));
    let Some(framework) = master.framework_mut(&id) else { return };
    framework.link = FrameworkLink::Disconnected { since: now.wall };
    let timeout = failover_timeout(&framework.info);
    let framework = Arc::new(framework.clone());
    Master::log(Transition::FrameworkDisconnected { framework, failover_timeout: timeout }, out);
    offer::withdraw_all_of(master, &id);
    master.allocator.deactivate_framework(&id);
    if timeout.is_zero() {
        remove(master, now, &id, FrameworkRemoval::FailoverTimeout, out);
    } else {
        master.timers.set(Timer::Failover(id), now.mono + timeout);
    }
}

/// Ends the framework's stream, if it has one, without telling why.
pub(crate) fn hang_up(master: &mut Master, id: &FrameworkId, out: &mut Out) {
    if let Some(conn) = master.framework(id).and_then(|framework| framework.conn()) {
        master.schedulers.remove(&conn);
        master.timers.clear(&Timer::Heartbeat(conn));
        out.effect(Effect::CloseScheduler { conn });
    }
}

/// Removes a framework for good: its tasks are killed, its id is spent. A master that was deposed without noticing cannot:
/// nothing of it becomes visible before the record.
pub(crate) fn remove(
    master: &mut Master,
    now: Now,
    id: &FrameworkId,
    cause: FrameworkRemoval,
    out: &mut Out,
) {
    master.record(Record::RemoveFramework { id: id.clone() }, out);
    if let Some(framework) = master.framework(id).cloned() {
        Master::log(Transition::FrameworkRemoved { framework, cause }, out);
    }
    offer::withdraw_all_of(master, id);
    master.allocator.deactivate_framework(id);
    master.timers.clear(&Timer::Failover(id.clone()));
    let agents: Vec<AgentId> =
        master.footprint.get(id).into_iter().flat_map(|on| on.keys().cloned()).collect();
    end_tasks(master, now, id, out);
    for agent_id in &agents {
        master.send_to_agent(agent_id, to_agent::shutdown_framework(id), out);
        drop_executors(master, agent_id, id);
    }
    operation::orphan_all_of(master, id, out);
    hang_up(master, id, out);
    master.allocator.remove_framework(id);
    let Some(framework) = master.framework_mut(id) else { return };
    framework.link = FrameworkLink::Completed;
    framework.unregistered_at = Some(now.wall);
    let framework = framework.clone();
    master.state.frameworks.remove_mut(id);
    framework.unreachable_tasks.iter().chain(framework.completed_tasks.iter()).for_each(|task| {
        task::forget(master, task);
    });
    master.notify(|| notice::framework_removed(&framework), out);
    let limit = master.config.max_completed_frameworks;
    let forgotten = master.state.completed_frameworks.push(limit, id.clone(), Arc::new(framework));
    if let Some((id, _)) = forgotten {
        master.state.framework_counters.remove_mut(&id);
    }
}

/// How long the framework may be away; negative means not at all.
fn failover_timeout(info: &pb::FrameworkInfo) -> Duration {
    let seconds = info.failover_timeout.unwrap_or(0.0);
    if seconds > 0.0 { Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX) } else { Duration::ZERO }
}

/// Records all its tasks as killed, without updates: no scheduler is left.
fn end_tasks(master: &mut Master, now: Now, id: &FrameworkId, out: &mut Out) {
    let Some(framework) = master.framework(id).cloned() else { return };
    let verdict =
        Verdict::new(pb::TaskState::TASK_KILLED, Reason::REASON_FRAMEWORK_REMOVED, "Framework removed");
    for (task_id, task) in framework.tasks.iter() {
        if !task.state().is_terminal() {
            let status = verdict.on_task(now, task);
            task::update(master, id, &status, status.state, out);
        }
        task::complete(master, id, task_id);
    }
    let unreachable: Vec<TaskId> = framework.unreachable_tasks.iter().map(|task| task.id.clone()).collect();
    for task_id in &unreachable {
        if let Some(task) = task::take_unreachable(master, id, task_id) {
            Master::log(Transition::TaskUpdated(TaskUpdate::of(id, &verdict.on_task(now, &task))), out);
            task::record_completed(master, task.ended(now, &verdict));
        }
    }
}

fn drop_executors(master: &mut Master, agent_id: &AgentId, id: &FrameworkId) {
    let Some(agent) = master.agent(agent_id) else { return };
    let ids: Vec<ExecutorId> =
        agent.executors_of(id).map(|executor| ExecutorId::from(&*executor.info.executor_id)).collect();
    for executor_id in &ids {
        executor::remove(master, agent_id, id, executor_id);
    }
}
