//! Where the rules of `validate` meet the master's state: what a launch or an operation is checked against.

use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as FrameworkCapability;
use tepui_proto::mesos::v1::offer::operation::LaunchGroup;
use tepui_resources::{Operation, Resources};
use tepui_types::{AgentId, ExecutorId, FrameworkId, TaskId};

use crate::master::Master;
use crate::op::Deal;
use crate::state::{Agent, Framework};
use crate::validate::{self, Known, Launch, Scene, TaskUse};

pub(crate) fn framework_info(info: &pb::FrameworkInfo) -> Result<(), String> {
    validate::framework::info(info)
}

pub(crate) fn task(master: &Master, deal: &Deal, info: &pb::TaskInfo) -> Result<(), String> {
    let parties = Parties::of(master, deal)?;
    validate::task::launch(&parties.launch(master, deal), info)
}

pub(crate) fn group(master: &Master, deal: &Deal, group: &LaunchGroup) -> Result<(), String> {
    let parties = Parties::of(master, deal)?;
    validate::group::launch_group(&parties.launch(master, deal), group)
}

pub(crate) fn operation(master: &Master, deal: &Deal, operation: &Operation) -> Result<(), String> {
    let Parties { framework, agent } = Parties::of(master, deal)?;
    let used: Resources = master.allocator.holdings(&deal.agent_id).map(|(_, held)| &held.used).sum();
    let scene = Scene {
        roles: Some(&framework.roles()),
        shared_resources: framework.has(FrameworkCapability::SHARED_RESOURCES),
        principal: framework.info.principal.as_deref(),
        agent_capabilities: &agent.capabilities,
        total: &agent.total,
        used: &used,
    };
    validate::operation::operation(&scene, operation)
}

/// The same for operators, who reserve for any role.
pub(crate) fn operators_operation(
    master: &Master,
    id: &AgentId,
    principal: Option<&str>,
    operation: &Operation,
) -> Result<(), String> {
    let agent = master.agent(id).ok_or("Agent is unknown")?;
    let used: Resources = master.allocator.holdings(id).map(|(_, held)| &held.used).sum();
    let scene = Scene {
        roles: None,
        shared_resources: true,
        principal,
        agent_capabilities: &agent.capabilities,
        total: &agent.total,
        used: &used,
    };
    validate::operation::operation(&scene, operation)
}

/// Those between whom a deal is made.
struct Parties<'a> {
    framework: &'a Framework,
    agent: &'a Agent,
}

impl<'a> Parties<'a> {
    fn of(master: &'a Master, deal: &Deal) -> Result<Self, String> {
        let framework = master.framework(&deal.framework_id).ok_or("Framework is unknown")?;
        let agent = master.agent(&deal.agent_id).ok_or("Agent is unknown")?;
        Ok(Self { framework, agent })
    }

    fn launch<'b>(&'b self, master: &'b Master, deal: &'b Deal) -> Launch<'b> {
        Launch {
            framework_id: &self.framework.id,
            agent_id: &self.agent.id,
            agent_capabilities: &self.agent.capabilities,
            best_effort_tasks: master.config.best_effort_tasks,
            task_group_limits: master.config.task_group_limits,
            limits: &master.config.limits,
            task_bytes: self.framework.task_bytes,
            remaining: &deal.pool,
            known: self,
        }
    }
}

impl Known for Parties<'_> {
    fn task(&self, id: &TaskId) -> TaskUse {
        match (self.framework.tasks.contains_key(id), self.framework.unreachable_tasks.contains(id)) {
            (true, _) => TaskUse::Live,
            (false, true) => TaskUse::Unreachable,
            (false, false) => TaskUse::Unused,
        }
    }

    fn executor(&self, id: &ExecutorId) -> Option<&pb::ExecutorInfo> {
        let key: (FrameworkId, ExecutorId) = (self.framework.id.clone(), id.clone());
        self.agent.executors.get(&key).map(|executor| &executor.info)
    }

    fn shares_cgroups(&self, id: &ExecutorId) -> Option<bool> {
        self.framework.shares_cgroups.get(id).copied()
    }
}
