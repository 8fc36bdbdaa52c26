//! The v1 reads that show the agent, from one snapshot.

mod lists;

use std::sync::Arc;

use bytes::Bytes;
use tepui_container::Counts;
use tepui_core_agent::{Executor, Framework, State, Task, TaskStage};
use tepui_http::Encoding;
use tepui_program::operator::flag_list;
use tepui_program::{ServerInfo, classic};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_proto::mesos::v1::agent::{Call, Response, response};
use tepui_store::Room;

use crate::metrics;
use crate::statistics::{self, Measuring, Statistics, container_status};

/// What a read is answered from.
pub(crate) struct Sources {
    pub state: Arc<State>,
    pub info: Arc<ServerInfo>,
    pub logging_level: u32,
    pub measuring: Measuring,
    pub counts: Counts,
    pub room: Option<Room>,
}

/// The bytes of the answer to a call whose type is one of the reads. May take its time.
pub(crate) fn encoded(sources: &Sources, call: &Call, encoding: Encoding) -> Bytes {
    let answer = answer(sources, call);
    match (encoding, answer.r#type) {
        (Encoding::Json, Some(response::Type::GET_STATE)) => lists::state(&answer, &answer.get_state).into(),
        (Encoding::Json, Some(response::Type::GET_TASKS)) => lists::tasks(&answer).into(),
        (Encoding::Json, Some(response::Type::GET_EXECUTORS)) => lists::executors(&answer).into(),
        (Encoding::Json, Some(response::Type::GET_FRAMEWORKS)) => lists::frameworks(&answer).into(),
        _ => encoding.encode(&answer),
    }
}

fn answer(sources: &Sources, call: &Call) -> Response {
    let state = &*sources.state;
    let mut answer = Response::default();
    match call.r#type.unwrap_or(Type::UNKNOWN) {
        Type::GET_HEALTH => {
            answer.r#type = Some(response::Type::GET_HEALTH);
            answer.get_health = response::GetHealth { healthy: true, ..Default::default() }.into();
        }
        Type::GET_FLAGS => {
            let flags = flag_list(&sources.info.flags);
            answer.r#type = Some(response::Type::GET_FLAGS);
            answer.get_flags = response::GetFlags { flags, ..Default::default() }.into();
        }
        Type::GET_VERSION => {
            let version_info = classic::version_info().into();
            answer.r#type = Some(response::Type::GET_VERSION);
            answer.get_version = response::GetVersion { version_info, ..Default::default() }.into();
        }
        Type::GET_LOGGING_LEVEL => {
            answer.r#type = Some(response::Type::GET_LOGGING_LEVEL);
            let level = sources.logging_level;
            answer.get_logging_level = response::GetLoggingLevel { level, ..Default::default() }.into();
        }
        Type::GET_STATE => {
            answer.r#type = Some(response::Type::GET_STATE);
            answer.get_state = whole(state).into();
        }
        Type::GET_CONTAINERS => {
            answer.r#type = Some(response::Type::GET_CONTAINERS);
            let statistics = Statistics::measure(&sources.measuring, state);
            answer.get_containers = containers(state, call, &statistics).into();
        }
        Type::GET_METRICS => {
            let metrics = metrics::collect(state, &sources.counts, sources.room).list();
            answer.r#type = Some(response::Type::GET_METRICS);
            answer.get_metrics = response::GetMetrics { metrics, ..Default::default() }.into();
        }
        Type::GET_FRAMEWORKS => {
            answer.r#type = Some(response::Type::GET_FRAMEWORKS);
            answer.get_frameworks = frameworks(state).into();
        }
        Type::GET_EXECUTORS => {
            answer.r#type = Some(response::Type::GET_EXECUTORS);
            answer.get_executors = executors(state).into();
        }
        Type::GET_TASKS => {
            answer.r#type = Some(response::Type::GET_TASKS);
            answer.get_tasks = tasks(state).into();
        }
        Type::GET_OPERATIONS => {
            let operations = state.operations.values().map(|one| (**one).clone()).collect();
            answer.r#type = Some(response::Type::GET_OPERATIONS);
            answer.get_operations = response::GetOperations { operations, ..Default::default() }.into();
        }
        Type::GET_RESOURCE_PROVIDERS => {
            answer.r#type = Some(response::Type::GET_RESOURCE_PROVIDERS);
            answer.get_resource_providers = response::GetResourceProviders::default().into();
        }
        // GET_AGENT; the caller asks for nothing else.
        _ => {
            answer.r#type = Some(response::Type::GET_AGENT);
            answer.get_agent = agent(state).into();
        }
    }
    answer
}

fn whole(state: &State) -> response::GetState {
    response::GetState {
        get_tasks: tasks(state).into(),
        get_executors: executors(state).into(),
        get_frameworks: frameworks(state).into(),
        ..Default::default()
    }
}

fn agent(state: &State) -> response::GetAgent {
    let drain = state.drain.as_deref();
    let started =
        drain.map(|drain| pb::TimeInfo { nanoseconds: drain.started.as_nanos_i64(), ..Default::default() });
    response::GetAgent {
        agent_info: (*state.info).clone().into(),
        drain_config: drain.map(|drain| drain.config.clone()).into(),
        estimated_drain_start_time: started.into(),
        ..Default::default()
    }
}

fn frameworks(state: &State) -> response::GetFrameworks {
    let entry = |framework: &Arc<Framework>| response::get_frameworks::Framework {
        framework_info: (*framework.info).clone().into(),
        ..Default::default()
    };
    response::GetFrameworks {
        frameworks: state.frameworks.values().map(entry).collect(),
        completed_frameworks: state.completed_frameworks.iter().map(entry).collect(),
        ..Default::default()
    }
}

fn executors(state: &State) -> response::GetExecutors {
    let entry = |executor: &Arc<Executor>| response::get_executors::Executor {
        executor_info: (*executor.info).clone().into(),
        ..Default::default()
    };
    response::GetExecutors {
        executors: live_executors(state).map(entry).collect(),
        completed_executors: completed_executors(state).map(entry).collect(),
        ..Default::default()
    }
}

fn tasks(state: &State) -> response::GetTasks {
    let staged = |is_in: fn(&TaskStage) -> bool| {
        let tasks = live_executors(state).flat_map(|executor| executor.tasks.values());
        tasks.filter(move |task| is_in(&task.stage)).map(clone).collect()
    };
    let all = live_executors(state).chain(completed_executors(state));
    let of_live = completed_executors(state).flat_map(|executor| executor.tasks.values());
    response::GetTasks {
        queued_tasks: staged(TaskStage::is_queued),
        launched_tasks: staged(TaskStage::is_launched),
        terminated_tasks: staged(TaskStage::is_terminated),
        completed_tasks: all
            .flat_map(|executor| executor.completed_tasks.iter())
            .chain(of_live)
            .map(clone)
            .collect(),
        ..Default::default()
    }
}

fn clone(task: &Arc<Task>) -> pb::Task {
    task.task.clone()
}

fn live_executors(state: &State) -> impl Iterator<Item = &Arc<Executor>> {
    state.frameworks.values().flat_map(|framework| framework.executors.values())
}

fn completed_executors(state: &State) -> impl Iterator<Item = &Arc<Executor>> {
    let frameworks = state.frameworks.values().chain(state.completed_frameworks.iter());
    frameworks.flat_map(|framework| framework.completed_executors.iter())
}

/// Executors' containers, and on request those nested in them or standing alone.
fn containers(state: &State, call: &Call, statistics: &Statistics) -> response::GetContainers {
    let asked = &call.get_containers;
    let (nested, alone) = (asked.show_nested.unwrap_or(false), asked.show_standalone.unwrap_or(false));
    let of_executors = statistics::live(state).map(|executor| response::get_containers::Container {
        framework_id: executor.framework_id.to_proto().into(),
        executor_id: executor.id.to_proto().into(),
        executor_name: Some(executor.info.name.clone().unwrap_or_default()),
        container_id: executor.container_id.to_proto().into(),
        container_status: container_status(executor.container_id.to_proto(), executor.pid).into(),
        resource_statistics: statistics.get(&executor.container_id).cloned().into(),
        ..Default::default()
    });
    let others = statistics::others(state, nested, alone);
    let others = others.map(|(container, pid)| response::get_containers::Container {
        container_id: pb::ContainerID { value: container.id.value().to_owned(), ..Default::default() }.into(),
        container_status: container_status(container.id.to_proto(), pid).into(),
        resource_statistics: statistics.get(&container.id).cloned().into(),
        ..Default::default()
    });
    response::GetContainers { containers: of_executors.chain(others).collect(), ..Default::default() }
}
