//! The least that must hold before something is launched.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::Operation;
use tepui_proto::mesos::v1::offer::operation::LaunchGroup;
use tepui_resources::Resources;
use tepui_types::{ExecutorId, TaskId};

use crate::master::Master;
use crate::op::Deal;

pub(crate) fn framework_info(_info: &pb::FrameworkInfo) -> Result<(), String> {
    Ok(())
}

pub(crate) fn task(master: &Master, deal: &Deal, info: &pb::TaskInfo) -> Result<(), String> {
    unused(master, deal, info)?;
    if info.command.is_set() == info.executor.is_set() {
        return Err(
            "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present".into()
        );
    }
    let mut wanted = resources(&info.resources)?;
    if let Some(executor) = info.executor.as_option() {
        wanted += new_executor(master, deal, executor)?;
    }
    fits(deal, &wanted)
}

pub(crate) fn group(master: &Master, deal: &Deal, group: &LaunchGroup) -> Result<(), String> {
    let mut wanted = new_executor(master, deal, &group.executor)?;
    for info in &group.task_group.tasks {
        unused(master, deal, info)?;
        wanted += resources(&info.resources)?;
    }
    fits(deal, &wanted)
}

pub(crate) fn operation(_master: &Master, _deal: &Deal, _operation: &Operation) -> Result<(), String> {
    Ok(())
}

fn unused(master: &Master, deal: &Deal, info: &pb::TaskInfo) -> Result<(), String> {
    let id = TaskId::from(&*info.task_id);
    let framework = master.framework(&deal.framework_id).ok_or("Framework is unknown")?;
    if framework.tasks.contains_key(&id) {
        return Err(format!("Task has duplicate ID: {id}"));
    }
    if framework.unreachable_tasks.contains(&id) {
        return Err(format!("Task reuses the ID of an unreachable task: {id}"));
    }
    if *info.agent_id.value != *deal.agent_id.as_str() {
        return Err(format!("Task uses invalid agent {}", info.agent_id.value));
    }
    Ok(())
}

fn new_executor(master: &Master, deal: &Deal, executor: &pb::ExecutorInfo) -> Result<Resources, String> {
    let key = (deal.framework_id.clone(), ExecutorId::from(&*executor.executor_id));
    match master.agent(&deal.agent_id).is_some_and(|agent| agent.executors.contains_key(&key)) {
        true => Ok(Resources::new()),
        false => resources(&executor.resources),
    }
}

fn resources(list: &[pb::Resource]) -> Result<Resources, String> {
    Resources::from_proto(list).map_err(|why| format!("Task uses invalid resources: {why}"))
}

fn fits(deal: &Deal, wanted: &Resources) -> Result<(), String> {
    match deal.pool.contains(wanted) {
        true => Ok(()),
        false => Err(format!(
            "Total resources {wanted} required by task and its executor is more than available {}",
            deal.pool
        )),
    }
}
