//! `/state` of the agent: its frameworks, executors and tasks, under the old words.

use tepui_core_agent::{Executor, Framework, State, Task, TaskStage};
use tepui_program::{ServerInfo, classic};
use tepui_proto::Enumeration;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::framework_info::capability::Type;
use tepui_resources::Resources;

pub(crate) fn state(w: &mut JsonWriter, state: &State, info: &ServerInfo, pid: &str) {
    w.object(|w| {
        classic::version_members(w);
        w.field("start_time", &state.started_at.as_secs_f64());
        self_members(w, state, pid);
        resource_members(w, state);
        w.array_field("resource_providers", |_| ());
        classic::attributes(w, &state.info.attributes);
        w.optional_field(
            "master_hostname",
            state.master.as_ref().and_then(|master| master.hostname.as_ref()),
        );
        info.write(w);
        w.array_field("frameworks", |w| state.frameworks.values().for_each(|one| framework(w, one)));
        w.array_field("completed_frameworks", |w| {
            state.completed_frameworks.iter().for_each(|one| framework(w, one));
        });
    });
}

fn self_members(w: &mut JsonWriter, state: &State, pid: &str) {
    w.field("id", &state.info.id.value);
    w.field("pid", pid);
    w.field("hostname", &state.info.hostname);
    classic::names(w, "capabilities", state.capabilities.iter().copied());
    classic::domain(w, state.info.domain.as_option());
    if let Some(pressure) = &state.disk_pressure {
        classic::disk_pressure(w, pressure);
    }
    if let Some(drain) = &state.drain {
        w.field("drain_config", &drain.config);
        w.field("estimated_drain_start_time_seconds", &drain.started.as_secs_f64());
    }
}

fn resource_members(w: &mut JsonWriter, state: &State) {
    let (total, allocated) = (&state.total, allocated(state));
    classic::resources(w, "resources", total);
    classic::reserved_resources(w, "reserved_resources", total);
    classic::resources(w, "unreserved_resources", &total.unreserved());
    classic::reserved_resources_full(w, "reserved_resources_full", total);
    classic::resources_full(w, "unreserved_resources_full", &total.unreserved());
    classic::reserved_resources(w, "reserved_resources_allocated", &allocated);
    classic::resources(w, "unreserved_resources_allocated", &allocated.unreserved());
}

/// What executors and their live tasks have.
fn allocated(state: &State) -> Resources {
    let executors = state.frameworks.values().flat_map(|framework| framework.executors.values());
    executors.map(|executor| executor.resources()).sum()
}

fn framework(w: &mut JsonWriter, framework: &Framework) {
    let info = &framework.info;
    w.object(|w| {
        w.field("id", framework.id.as_str());
        w.field("name", &info.name);
        w.field("user", &info.user);
        w.field("failover_timeout", &info.failover_timeout.unwrap_or(0.0));
        w.field("checkpoint", &info.checkpoint.unwrap_or(false));
        w.field("hostname", info.hostname.as_deref().unwrap_or_default());
        w.optional_field("principal", info.principal.as_ref());
        match info.capabilities.iter().any(|capability| capability.r#type == Some(Type::MULTI_ROLE)) {
            true => w.field("roles", &info.roles),
            false => w.field("role", info.role.as_deref().unwrap_or("*")),
        }
        w.array_field("executors", |w| framework.executors.values().for_each(|one| executor(w, one)));
        w.array_field("completed_executors", |w| {
            framework.completed_executors.iter().for_each(|one| executor(w, one));
        });
    });
}

fn executor(w: &mut JsonWriter, executor: &Executor) {
    let (info, resources) = (&executor.info, executor.resources());
    w.object(|w| {
        w.field("id", executor.id.as_str());
        w.field("name", info.name.as_deref().unwrap_or_default());
        w.field("source", info.source.as_deref().unwrap_or_default());
        w.field("container", executor.container_id.value());
        w.field("directory", &*executor.sandbox);
        classic::resources(w, "resources", &resources);
        w.optional_field("role", classic::role_of(&resources));
        classic::labels(w, info.labels.as_option());
        w.optional_field("type", info.r#type.map(|kind| kind.proto_name()));
        tasks_members(w, executor);
    });
}

fn tasks_members(w: &mut JsonWriter, executor: &Executor) {
    let staged =
        |is_in: fn(&TaskStage) -> bool| executor.tasks.values().filter(move |task| is_in(&task.stage));
    w.array_field("tasks", |w| {
        staged(TaskStage::is_launched).for_each(|task| classic::task(w, &task.task, &task.resources));
    });
    w.array_field("queued_tasks", |w| staged(TaskStage::is_queued).for_each(|task| queued(w, task)));
    w.array_field("completed_tasks", |w| {
        let over = executor.completed_tasks.iter().chain(staged(TaskStage::is_terminated));
        over.for_each(|task| classic::task(w, &task.task, &task.resources));
    });
}

fn queued(w: &mut JsonWriter, task: &Task) {
    let info = &task.info;
    w.object(|w| {
        w.field("id", task.id.as_str());
        w.field("name", &info.name);
        w.field("slave_id", &info.agent_id.value);
        classic::resources(w, "resources", &task.resources);
        w.field("role", classic::role_of(&task.resources).unwrap_or("*"));
        if let Some(command) = info.command.as_option() {
            classic::command(w, command);
        }
        w.optional_field(
            "executor_id",
            info.executor.as_option().map(|executor| &executor.executor_id.value),
        );
        w.optional_field("discovery", info.discovery.as_option());
    });
}
