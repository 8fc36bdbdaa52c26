//! An agent's report at its SUBSCRIBE, validated once and converted.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1::call::{DiskPressure, Isolation, Subscribe};
use tepui_proto::wire;
use tepui_resources::{Resources, Role};
use tepui_types::{AgentId, FrameworkId, check_id};

use crate::entities::maintenance;

/// A report that makes sense; only `check` makes one.
#[derive(Debug)]
pub(super) struct Report {
    /// Unset for an agent that was never admitted.
    pub(super) id: Option<AgentId>,
    pub(super) info: pb::AgentInfo,
    pub(super) version: Arc<str>,
    pub(super) pid: Arc<str>,
    pub(super) speaks_tls: bool,
    pub(super) capabilities: Arc<[pb::agent_info::capability::Type]>,
    pub(super) total: Resources,
    pub(super) frameworks: BTreeMap<FrameworkId, pb::FrameworkInfo>,
    pub(super) tasks: Vec<(pb::Task, Resources)>,
    pub(super) executors: Vec<(pb::ExecutorInfo, Resources)>,
    pub(super) completed_tasks: Vec<pb::Task>,
    pub(super) operations: Vec<pb::Operation>,
    pub(super) isolations: Vec<Isolation>,
    pub(super) disk_pressure: Option<DiskPressure>,
}

impl Report {
    pub(super) fn check(call: Subscribe, bytes_max: usize) -> Result<Report, String> {
        check_size(&call, bytes_max)?;
        let info = call.agent_info.into_option().ok_or("Expecting 'agent_info' to be present")?;
        let id = info.id.as_option().filter(|id| !id.value.is_empty()).map(AgentId::from);
        if let Some(id) = &id {
            check_id(id.as_str()).map_err(|why| format!("'agent_info.id' is not valid: {why}"))?;
        }
        let mut total = resources("total_resources", &call.total_resources)?.unallocate();
        total += resources("oversubscribed_resources", &call.oversubscribed_resources)?.unallocate();
        let tasks = call.tasks.into_iter().map(|task| {
            let used = held(&format!("task '{}'", task.task_id.value), &task.resources)?;
            Ok((task, used))
        });
        let executors = call.executors.into_iter().map(|executor| {
            let used = held(&format!("executor '{}'", executor.executor_id.value), &executor.resources)?;
            Ok((executor, used))
        });
        Ok(Report {
            id,
            info,
            version: call.version.into(),
            pid: call.pid.into(),
            speaks_tls: call.speaks_tls.unwrap_or(false),
            capabilities: call.capabilities.iter().filter_map(|capability| capability.r#type).collect(),
            total,
            frameworks: call
                .frameworks
                .into_iter()
                .map(|info| (FrameworkId::from(&*info.id), info))
                .collect(),
            tasks: tasks.collect::<Result<_, String>>()?,
            executors: executors.collect::<Result<_, String>>()?,
            completed_tasks: call.completed_tasks,
            operations: call.operations,
            isolations: call.isolations,
            disk_pressure: call.disk_pressure.into_option(),
        })
    }

    /// The part of the pid that identifies the machine of the agent.
    pub(super) fn ip(&self) -> &str {
        maintenance::ip(&self.pid)
    }
}

/// What is kept of the agent itself; its tasks were small enough when they were launched.
fn check_size(call: &Subscribe, bytes_max: usize) -> Result<(), String> {
    let kept = Subscribe {
        agent_info: call.agent_info.clone(),
        version: call.version.clone(),
        pid: call.pid.clone(),
        total_resources: call.total_resources.clone(),
        oversubscribed_resources: call.oversubscribed_resources.clone(),
        ..Default::default()
    };
    wire::check_size(&kept, bytes_max)
        .map_err(|why| format!("The description of the agent {why} (--max_agent_info_size)"))
}

/// Resources in use on the agent: always allocated to a role.
fn held(what: &str, list: &[pb::Resource]) -> Result<Resources, String> {
    Ok(resources(what, list)?.allocate_missing(&Role::from("*")))
}

pub(super) fn resources(what: &str, list: &[pb::Resource]) -> Result<Resources, String> {
    Resources::from_proto(list).map_err(|why| format!("{what}: {why}"))
}
