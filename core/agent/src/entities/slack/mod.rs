//! Lent resources: reserved ones that their owner did not use, lent to others as allocation slack, and reclaimed.
//!
//! A launch or the end of a reservation first preempts just enough borrowers; a launch is pending until they have
//! terminated. Victims and launches are derived from the current allocation each time, so a restart in between
//! changes nothing. Nothing happens here on an agent without borrowers.

mod choose;

use alloc::format;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_resources::{Operation, Resources, Revocable, Role};
use tepui_types::{TaskId, duration_text};

use crate::agent::{Agent, Out};
use crate::entities::status::Verdict;
use crate::entities::{lifecycle, status};
use crate::state::bookkeeping::ExecutorKey;
use crate::state::{Cause, Executor, ExecutorPhase, Phase};
use choose::Holding;

/// Whether what was just added to an executor, something lent among it if it `borrows`, can start now. If not, it waits
/// from now on: [`settle`] makes room.
pub(crate) fn may_start(agent: &mut Agent, now: Now, key: &ExecutorKey, borrows: bool) -> bool {
    if borrows {
        agent.slack.borrowers.insert(key.clone());
    }
    if agent.slack.borrowers.is_empty() || fits(agent, key) {
        return true;
    }
    agent.slack.waiting.entry(key.clone()).or_insert(now.mono);
    false
}

/// An allocation changed or a launch became pending: borrowers are preempted, and launches that fit are started.
pub(crate) fn settle(agent: &mut Agent, now: Now, out: &mut Out) {
    if agent.slack.borrowers.is_empty() && agent.slack.waiting.is_empty() {
        return;
    }
    match agent.state.phase {
        Phase::Running => (),
        // Nothing starts yet, or any more.
        Phase::Recovering | Phase::Reconnecting | Phase::Terminating => return,
    }
    let mut waiting: Vec<ExecutorKey> = agent.slack.waiting.keys().cloned().collect();
    waiting.sort_by_key(|key| agent.slack.waiting.get(key).copied());
    let role = waiting.iter().find_map(|key| role_of(agent.state.executor(&key.0, &key.1)?));
    preempt_holders(agent, now, role.as_ref(), out);
    for key in waiting {
        let executor = agent.state.executor(&key.0, &key.1);
        if executor.is_none_or(|executor| executor.is_ending() || executor.queue.is_empty()) {
            agent.slack.waiting.remove(&key); // It was terminated, or its tasks were, while it was pending.
        } else if fits(agent, &key) {
            start(agent, now, &key, out);
        }
    }
}

/// Reports to the framework of a pending launch why its tasks do not start yet.
pub(crate) fn note_waiting(agent: &mut Agent, now: Now, key: &ExecutorKey, tasks: &[TaskId], out: &mut Out) {
    let (framework, executor) = key;
    if !agent.slack.is_waiting(framework, executor) {
        return; // It has begun or ended already.
    }
    let executors = match agent.slack.leaving.len() {
        1 => "1 executor".into(),
        more => format!("{more} executors"),
    };
    let grace = duration_text(agent.config.slack_eviction_grace);
    let message =
        format!("Waiting for lent resources: {executors} preempted, with a grace period of {grace}");
    let verdict = Verdict::note(TaskState::TASK_STAGING, message);
    for task in tasks {
        status::from_agent(agent, now, framework, Some(executor), task, &verdict, out);
    }
}

/// Reservations were made, changed or given up.
pub(crate) fn reservations_changed(agent: &mut Agent, now: Now, operation: &Operation, out: &mut Out) {
    let changed = match operation {
        Operation::Reserve { resources, .. } | Operation::Unreserve { resources } => resources,
        Operation::Create { volumes } | Operation::Destroy { volumes } => volumes,
        Operation::GrowVolume { .. } | Operation::ShrinkVolume { .. } => return settle(agent, now, out),
    };
    let role = changed.iter().find_map(|resource| resource.reservation_role().cloned());
    preempt_holders(agent, now, role.as_ref(), out);
    settle(agent, now, out);
}

/// After a restart: borrowers, preempted executors, and pending launches. All of these wait until it is known which
/// containers are alive.
pub(crate) fn restore(agent: &mut Agent, now: Now) {
    let mut queued = Vec::new();
    for executor in agent.state.frameworks.values().flat_map(|framework| framework.executors.values()) {
        let key = (executor.framework_id.clone(), executor.id.clone());
        if executor.is_terminated() {
            continue;
        }
        if is_borrower(executor) {
            agent.slack.borrowers.insert(key.clone());
        }
        if executor.preempted().is_some() {
            let tasks = executor.tasks.values();
            let held = tasks.fold(executor.own_allocated(), |sum, task| sum + &task.resources);
            agent.slack.leaving.insert(key.clone(), held);
        }
        if executor.phase == ExecutorPhase::Pending {
            agent.slack.waiting.insert(key, now.mono);
        } else if !executor.queue.is_empty() {
            queued.push((key, now.mono));
        }
    }
    if !agent.slack.borrowers.is_empty() {
        agent.slack.waiting.extend(queued);
    }
}

/// Recovery has finished: pending launches that fit are started, and reclaims continue.
pub(crate) fn recovered(agent: &mut Agent, now: Now, out: &mut Out) {
    let waiting: Vec<ExecutorKey> = agent.slack.waiting.keys().cloned().collect();
    for key in waiting {
        let has_container = agent.state.executor(&key.0, &key.1).is_some_and(Executor::has_container);
        if has_container && fits(agent, &key) {
            agent.slack.waiting.remove(&key);
            agent.touched.executor(&key.0, &key.1);
        }
    }
    settle(agent, now, out);
}

fn start(agent: &mut Agent, now: Now, key: &ExecutorKey, out: &mut Out) {
    let Some(since) = agent.slack.waiting.remove(key) else { return };
    let waited = now.mono.since(since);
    let counters = &mut agent.state.counters;
    counters.slack_take_backs += 1;
    counters.slack_take_back_time += waited;
    counters.slack_take_back_time_max = counters.slack_take_back_time_max.max(waited);
    agent.state.touch();
    lifecycle::start_waiting(agent, now, &key.0, &key.1, out);
}

/// Preempts the holders of the needed resources. Executors that are already terminating do not count as holders.
fn preempt_holders(agent: &mut Agent, now: Now, role: Option<&Role>, out: &mut Out) {
    if agent.slack.borrowers.is_empty() {
        return;
    }
    let staying =
        executors(agent).filter(|executor| !executor.is_ending()).map(|it| holding(it, it.allocated()));
    for (framework, id) in choose::victims(&agent.state.total, staying.collect()) {
        let message = match role {
            Some(role) => format!("Role '{role}' took back the resources that were lent"),
            None => "The resources that were lent are in use by their owner".into(),
        };
        let cause = Cause {
            state: status::lost(agent, &framework, TaskState::TASK_GONE),
            reason: Reason::REASON_CONTAINER_PREEMPTED,
            message,
        };
        agent.state.counters.slack_evictions += 1;
        if let Some(held) = agent.state.executor(&framework, &id).map(Executor::allocated) {
            agent.slack.leaving.insert((framework.clone(), id.clone()), held);
        }
        lifecycle::preempt(agent, now, &framework, &id, cause, out);
    }
}

/// Whether there is room for all of this executor beside everything that runs, or is still about to end.
fn fits(agent: &Agent, key: &ExecutorKey) -> bool {
    choose::fits(&agent.state.total, &held_by_others(agent, key))
}

/// The current allocation; of this executor including its pending tasks.
fn held_by_others(agent: &Agent, key: &ExecutorKey) -> Vec<Holding> {
    let held = |it: &Executor| {
        let own = (it.framework_id.clone(), it.id.clone());
        let held = match agent.slack.leaving.get(&own) {
            Some(held) => held.clone(),
            None if own != *key && agent.slack.waiting.contains_key(&own) => running(it),
            None => it.allocated(),
        };
        holding(it, held)
    };
    executors(agent).map(held).collect()
}

/// Whether what runs beside what is lent is more than there is: must never be. During recovery nothing starts, and it is not
/// worked out yet what waits.
#[cfg(test)]
pub(crate) fn overlaps(agent: &Agent) -> bool {
    if agent.state.phase == Phase::Recovering {
        return false;
    }
    let nobody = (tepui_types::FrameworkId::new(""), tepui_types::ExecutorId::new(""));
    let holdings = held_by_others(agent, &nobody);
    choose::is_overfull(&agent.state.total, &holdings)
}

fn executors(agent: &Agent) -> impl Iterator<Item = &Executor> {
    let all = agent.state.frameworks.values().flat_map(|framework| framework.executors.values());
    all.map(|executor| &**executor).filter(|executor| !executor.is_terminated())
}

fn holding(executor: &Executor, held: Resources) -> Holding {
    let held = held.unallocate();
    Holding {
        key: (executor.framework_id.clone(), executor.id.clone()),
        added: executor.added,
        firm: held.non_revocable(),
        slack: held.revocable_as(Revocable::AllocationSlack),
    }
}

/// Of an executor for which more waits: what it has by now.
fn running(executor: &Executor) -> Resources {
    let launched = executor.live_tasks().filter(|task| task.stage.is_launched());
    let own = if executor.has_container() { executor.own_allocated() } else { Resources::default() };
    launched.fold(own, |sum, task| sum + &task.resources)
}

fn is_borrower(executor: &Executor) -> bool {
    executor.allocated().iter().any(|resource| resource.revocable() == Revocable::AllocationSlack)
}

/// Its role: by its reserved resources, else by its allocated ones. Lent resources do not count.
fn role_of(executor: &Executor) -> Option<Role> {
    let all = executor.allocated().non_revocable();
    let reserved = all.iter().find_map(|resource| resource.reservation_role().cloned());
    reserved.or_else(|| all.iter().find_map(|resource| resource.allocation().cloned()))
}
