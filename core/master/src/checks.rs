//! Where the rules of `validate` meet the master's state: what a launch or an operation is checked against.

use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as FrameworkCapability;
use tepui_proto::mesos::v1::offer::operation::LaunchGroup;
use tepui_resources::{Operation, Resources};
use tepui_types::{AgentId, ExecutorId, FrameworkId, TaskId};

use crate::accepted::AcceptedOffers;
use crate::master::Master;
use crate::state::{Agent, Framework};
use crate::validate::{self, Known, Launch, Scene, TaskUse};

pub(crate) fn framework_info(info: &pb::FrameworkInfo) -> Result<(), String> {
    validate::framework::info(info)
}

/// Checks a task of a LAUNCH; its resources, parsed.
pub(crate) fn task(
    master: &Master,
    accepted: &AcceptedOffers,
    info: &pb::TaskInfo,
) -> Result<Resources, String> {
    let parties = Parties::of(master, accepted)?;
    validate::task::launch(&parties.launch(master, accepted), info)
}

pub(crate) fn group(master: &Master, accepted: &AcceptedOffers, group: &LaunchGroup) -> Result<(), String> {
    let parties = Parties::of(master, accepted)?;
    validate::group::launch_group(&parties.launch(master, accepted), group)
}

pub(crate) fn operation(
    master: &Master,
    accepted: &AcceptedOffers,
    operation: &Operation,
) -> Result<(), String> {
    let Parties { framework, agent } = Parties::of(master, accepted)?;
    let used: Resources = master.allocator.holdings(&accepted.agent_id).map(|(_, held)| &held.used).sum();
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

/// The parties of an ACCEPT.
struct Parties<'a> {
    framework: &'a Framework,
    agent: &'a Agent,
}

impl<'a> Parties<'a> {
    fn of(master: &'a Master, accepted: &AcceptedOffers) -> Result<Self, String> {
        let framework = master.framework(&accepted.framework_id).ok_or("Framework is unknown")?;
        let agent = master.agent(&accepted.agent_id).ok_or("Agent is unknown")?;
        Ok(Self { framework, agent })
    }

    fn launch<'b>(&'b self, master: &'b Master, accepted: &'b AcceptedOffers) -> Launch<'b> {
        Launch {
            framework_id: &self.framework.id,
            agent_id: &self.agent.id,
            agent_capabilities: &self.agent.capabilities,
            best_effort_tasks: master.config.best_effort_tasks,
            task_group_limits: master.config.task_group_limits,
            limits: &master.config.limits,
            task_bytes: self.framework.task_bytes,
            remaining: &accepted.pool,
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
