//! The agent's metrics under their v1 names.

use std::time::{Duration, Instant};

use tepui_container::Counts;
use tepui_core_agent::{Executor, ExecutorPhase, State};
use tepui_http::Metrics;
use tepui_program::System;
use tepui_program::metrics::{disk_room, timer, uptime_secs};
use tepui_proto::mesos::v1::TaskState;
use tepui_resources::{Name, Resources, Revocable};
use tepui_runtime::Statistics;
use tepui_store::Room;

/// v1 has them, and what they count does not exist here.
const NEVER: [&str; 5] = [
    "containerizer/mesos/container_destroy_errors",
    "containerizer/mesos/provisioner/bind/remove_rootfs_errors",
    "containerizer/mesos/provisioner/remove_container_errors",
    "resource_provider_manager/events/disconnect",
    "resource_provider_manager/events/subscribe",
];

/// How far back timers of pulls look, as in v1.
const PULLS_WINDOW: Duration = Duration::from_secs(3600);

pub(crate) fn collect(state: &State, counts: &Counts, room: Option<Room>) -> Metrics {
    let mut metrics = Metrics::default();
    metrics.gauge("slave/uptime_secs", uptime_secs(state.started_at.0));
    metrics.gauge("slave/registered", f64::from(u8::from(state.master.is_some())));
    metrics.gauge("slave/frameworks_active", state.frameworks.size() as f64);
    let kept = state.executor_directory_max_allowed_age;
    metrics.gauge("slave/executor_directory_max_allowed_age_secs", kept.as_secs_f64());
    if let Some(took) = state.recovery_time {
        metrics.gauge("slave/recovery_time_secs", took.as_secs_f64());
    }
    metrics.gauge("slave/disk_pressure", f64::from(u8::from(state.disk_pressure.is_some())));
    if let Some(room) = room {
        disk_room(&mut metrics, "slave", room);
    }
    counters(&mut metrics, state);
    executors(&mut metrics, state);
    resources(&mut metrics, state);
    containerizer(&mut metrics, counts);
    NEVER.into_iter().for_each(|name| metrics.counter(name, 0));
    metrics.gauge("resource_provider_manager/subscribed", 0.0);
    System::now().add_to(&mut metrics);
    metrics
}

fn containerizer(metrics: &mut Metrics, counts: &Counts) {
    let fetcher = &counts.fetcher;
    metrics.counter("containerizer/fetcher/task_fetches_succeeded", fetcher.succeeded);
    metrics.counter("containerizer/fetcher/task_fetches_failed", fetcher.failed);
    metrics.gauge("containerizer/fetcher/cache_size_total_bytes", fetcher.cache_total_bytes as f64);
    metrics.gauge("containerizer/fetcher/cache_size_used_bytes", fetcher.cache_used_bytes as f64);
    if let Some(count) = counts.rootfses {
        metrics.gauge("containerizer/mesos/filesystem/containers_new_rootfs", count as f64);
    }
    for (name, pulls) in [
        ("containerizer/mesos/provisioner/docker_store/image_pull_ms", &counts.stored),
        ("containerizer/docker/image_pull_ms", &counts.brought_by_engine),
    ] {
        timer(metrics, name, Statistics::of(pulls.iter().copied(), PULLS_WINDOW, Instant::now()));
    }
}

fn counters(metrics: &mut Metrics, state: &State) {
    let counters = &state.counters;
    for (name, value) in [
        ("slave/recovery_errors", counters.recovery_errors),
        ("slave/container_launch_errors", counters.container_launch_errors),
        ("slave/executors_terminated", counters.executors_terminated),
        ("slave/executors_preempted", counters.executors_preempted),
        ("slave/slack_evictions", counters.slack_evictions),
        ("slave/slack_take_backs", counters.slack_take_backs),
        ("slave/memory_evictions", counters.memory_evictions),
        ("slave/disk_evictions", counters.disk_evictions),
        ("slave/valid_status_updates", counters.valid_status_updates),
        ("slave/invalid_status_updates", counters.invalid_status_updates),
        ("slave/valid_framework_messages", counters.valid_framework_messages),
        ("slave/invalid_framework_messages", counters.invalid_framework_messages),
        ("slave/tasks_finished", counters.tasks_finished),
        ("slave/tasks_failed", counters.tasks_failed),
        ("slave/tasks_killed", counters.tasks_killed),
        ("slave/tasks_lost", counters.tasks_lost),
        ("slave/tasks_gone", counters.tasks_gone),
        ("gc/path_removals_succeeded", counters.path_removals_succeeded),
        ("gc/path_removals_failed", counters.path_removals_failed),
    ] {
        metrics.counter(name, value);
    }
    let (all, longest) = (counters.slack_take_back_time, counters.slack_take_back_time_max);
    metrics.gauge("slave/slack_take_back_secs_total", all.as_secs_f64());
    metrics.gauge("slave/slack_take_back_secs_max", longest.as_secs_f64());
    metrics.gauge("gc/path_removals_pending", state.path_removals_pending as f64);
    metrics.gauge("slave/container_waits_pending", state.container_waits_pending as f64);
}

fn all_executors(state: &State) -> impl Iterator<Item = &Executor> {
    state.frameworks.values().flat_map(|framework| framework.executors.values()).map(|executor| &**executor)
}

fn executors(metrics: &mut Metrics, state: &State) {
    let phase = |wanted: fn(&ExecutorPhase) -> bool| {
        all_executors(state).filter(|executor| wanted(&executor.phase)).count() as f64
    };
    let registering = phase(|phase| matches!(phase, ExecutorPhase::Pending | ExecutorPhase::Registering));
    let running = phase(|phase| matches!(phase, ExecutorPhase::Running { .. }));
    let terminating = phase(|phase| matches!(phase, ExecutorPhase::Terminating { .. }));
    metrics.gauge("slave/executors_registering", registering);
    metrics.gauge("slave/executors_running", running);
    metrics.gauge("slave/executors_terminating", terminating);
    for (state_wanted, name) in [
        (TaskState::TASK_STAGING, "slave/tasks_staging"),
        (TaskState::TASK_STARTING, "slave/tasks_starting"),
        (TaskState::TASK_RUNNING, "slave/tasks_running"),
        (TaskState::TASK_KILLING, "slave/tasks_killing"),
    ] {
        let tasks = all_executors(state).flat_map(|executor| executor.tasks.values());
        let live = tasks.filter(|task| !task.stage.is_terminated());
        metrics.gauge(name, live.filter(|task| task.task.state == state_wanted).count() as f64);
    }
}

fn resources(metrics: &mut Metrics, state: &State) {
    let used: Resources =
        all_executors(state).filter(|executor| !executor.is_terminated()).map(Executor::resources).sum();
    // The agent has no amount of resources that could be lent, only of those that are.
    let lent = used.revocable_as(Revocable::AllocationSlack);
    let parts = [
        ("", state.total.non_revocable().quantities(), used.non_revocable().quantities()),
        (
            "_revocable",
            (state.total.revocable() + &state.oversubscribed + &lent).quantities(),
            used.revocable().quantities(),
        ),
    ];
    for name in [Name::Cpus, Name::Gpus, Name::Mem, Name::Disk] {
        for (kind, total, used) in &parts {
            let (total, used) = (total.get(&name).to_f64(), used.get(&name).to_f64());
            metrics.gauge(format!("slave/{name}{kind}_total"), total);
            metrics.gauge(format!("slave/{name}{kind}_used"), used);
            metrics
                .gauge(format!("slave/{name}{kind}_percent"), if total > 0.0 { used / total } else { 0.0 });
        }
    }
}
