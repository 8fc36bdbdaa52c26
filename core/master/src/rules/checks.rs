//! The checks of an ACCEPT against the master's state: authorization, normalization and the rules of `validate`.
//!
//! Every check happens here and once. What passes is a value that only these functions make, with its resources parsed;
//! handlers take such values. What does not is returned with its [`Rejection`].

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent_info::capability::Type as AgentCapability;
use tepui_proto::mesos::v1::framework_info::capability::Type as FrameworkCapability;
use tepui_proto::mesos::v1::offer::Operation as Message;
use tepui_proto::mesos::v1::offer::operation::{LaunchGroup, Type};
use tepui_proto::wire;
use tepui_resources::{Format, Operation, Resources};
use tepui_types::{AgentId, ExecutorId, FrameworkId, TaskId};

use crate::master::Master;
use crate::rules::authorization::LaunchRights;
use crate::rules::rejection::{Rejected, Rejection};
use crate::rules::{authorization, revocable};
use crate::state::{Agent, Framework};
use crate::validate::group::GroupResources;
use crate::validate::task::TaskResources;
use crate::validate::{self, Known, Launch, RunningExecutor, Scene, TaskUse};
use crate::values::accepted_offers::AcceptedOffers;
use crate::values::normalize;

/// Operations of one framework that it has not acknowledged; further ones must not have an id.
const OPERATIONS_OF_FRAMEWORK_MAX: usize = 10_000;

/// An operation that is well formed, normalized and authorized.
pub(crate) enum CheckedOperation {
    /// Each task is checked by [`task`] against what the tasks before it leave of the offers.
    Launch(Vec<pb::TaskInfo>),
    /// Checked by [`group`].
    LaunchGroup(LaunchGroup),
    Conversion(CheckedConversion),
    Unknown,
}

/// A change of resources, parsed.
pub(crate) struct CheckedConversion {
    message: Message,
    operation: Operation,
}

/// A task of a LAUNCH that may start.
pub(crate) struct CheckedTask {
    info: pb::TaskInfo,
    resources: TaskResources,
}

/// A group whose tasks may start.
pub(crate) struct CheckedGroup {
    group: LaunchGroup,
    resources: GroupResources,
}

impl CheckedConversion {
    /// As it was sent, and parsed.
    pub(crate) fn into_parts(self) -> (Message, Operation) {
        (self.message, self.operation)
    }
}

impl CheckedTask {
    pub(crate) fn into_parts(self) -> (pb::TaskInfo, TaskResources) {
        (self.info, self.resources)
    }
}

impl CheckedGroup {
    pub(crate) fn into_parts(self) -> (LaunchGroup, GroupResources) {
        (self.group, self.resources)
    }
}

pub(crate) fn framework_info(info: &pb::FrameworkInfo) -> Result<(), String> {
    validate::framework::info(info)
}

/// Checks an operation of an ACCEPT.
pub(crate) fn operation(
    master: &Master,
    accepted: &AcceptedOffers,
    mut message: Message,
) -> Result<CheckedOperation, Box<Rejected<Message>>> {
    let checked = shape(master, accepted, &mut message).map_err(Rejection::Invalid).and_then(|()| {
        normalize::operation(&mut message, accepted);
        authorization::operation(master, accepted, &message).map_err(Rejection::Invalid)?;
        conversion(master, accepted, &message).map_err(Rejection::Invalid)
    });
    match checked {
        Err(rejection) => Err(Box::new(Rejected { subject: message, rejection })),
        Ok(Some(operation)) => Ok(CheckedOperation::Conversion(CheckedConversion { message, operation })),
        Ok(None) => {
            let (launch, group) = (message.launch.into_option(), message.launch_group.into_option());
            Ok(match (message.r#type, launch, group) {
                (Some(Type::LAUNCH), Some(launch), _) => CheckedOperation::Launch(launch.task_infos),
                (Some(Type::LAUNCH_GROUP), _, Some(group)) => CheckedOperation::LaunchGroup(group),
                (Some(_) | None, _, _) => CheckedOperation::Unknown,
            })
        }
    }
}

/// Checks a task of a LAUNCH against what is left of the offers.
pub(crate) fn task(
    master: &Master,
    accepted: &AcceptedOffers,
    rights: &LaunchRights,
    mut info: pb::TaskInfo,
) -> Result<CheckedTask, Box<Rejected<pb::TaskInfo>>> {
    let authorized = authorization::run_task(master, rights, &info, info.executor.as_option());
    let checked = authorized.map_err(Rejection::Unauthorized).and_then(|()| {
        revocable::settle_task(master, accepted, &mut info);
        let parties = Parties::of(master, accepted).map_err(Rejection::Invalid)?;
        validate::task::launch(&parties.launch(master, accepted), &info).map_err(Rejection::Invalid)
    });
    match checked {
        Ok(resources) => Ok(CheckedTask { info, resources }),
        Err(rejection) => Err(Box::new(Rejected { subject: info, rejection })),
    }
}

/// Checks a LAUNCH_GROUP.
pub(crate) fn group(
    master: &Master,
    accepted: &AcceptedOffers,
    rights: &LaunchRights,
    mut group: LaunchGroup,
) -> Result<CheckedGroup, Box<Rejected<LaunchGroup>>> {
    let authorized = group
        .task_group
        .tasks
        .iter()
        .try_for_each(|task| authorization::run_task(master, rights, task, group.executor.as_option()));
    let checked = authorized.map_err(Rejection::Unauthorized).and_then(|()| {
        revocable::settle_group(master, accepted, &mut group);
        let parties = Parties::of(master, accepted).map_err(Rejection::Invalid)?;
        validate::group::launch_group(&parties.launch(master, accepted), &group).map_err(Rejection::Invalid)
    });
    match checked {
        Ok(resources) => Ok(CheckedGroup { group, resources }),
        Err(rejection) => Err(Box::new(Rejected { subject: group, rejection })),
    }
}

/// Shape and sound resources first, then whether feedback is possible.
fn shape(master: &Master, accepted: &AcceptedOffers, operation: &mut Message) -> Result<(), String> {
    if let Some((field, false)) = body(operation) {
        return Err(format!("Expecting '{field}' to be present"));
    }
    if operation.reserve.as_option().is_some_and(|reserve| !reserve.source.is_empty()) {
        return Err("'reserve.source' is not for schedulers".into());
    }
    if !is_launch(operation) {
        wire::check_size(operation, master.config.limits.operation)
            .map_err(|why| format!("The operation {why} (--max_operation_size)"))?;
    }
    for resource in normalize::resources(operation) {
        tepui_resources::validate::resource(resource).map_err(|why| why.to_string())?;
    }
    if !operation.id.is_set() {
        return Ok(());
    }
    if is_launch(operation) {
        return Err("'id' is not supported for launches".into());
    }
    feedback(master, accepted)
}

/// Whether a status of the operation can be reported and kept.
fn feedback(master: &Master, accepted: &AcceptedOffers) -> Result<(), String> {
    let unacknowledged = master.operations.count_of(&accepted.framework_id, OPERATIONS_OF_FRAMEWORK_MAX);
    if unacknowledged >= OPERATIONS_OF_FRAMEWORK_MAX {
        return Err(format!(
            "{OPERATIONS_OF_FRAMEWORK_MAX} operations with an 'id' are not acknowledged yet, which is the limit"
        ));
    }
    let agent = master.agent(&accepted.agent_id);
    match agent.is_some_and(|it| it.has(AgentCapability::AGENT_OPERATION_FEEDBACK)) {
        true => Ok(()),
        false => Err("The agent does not support operation feedback, so 'id' must not be set".into()),
    }
}

/// The message an operation cannot do without, and whether it is there.
fn body(operation: &Message) -> Option<(&'static str, bool)> {
    match operation.r#type.unwrap_or(Type::UNKNOWN) {
        Type::LAUNCH => Some(("launch", operation.launch.is_set())),
        Type::LAUNCH_GROUP => Some(("launch_group", operation.launch_group.is_set())),
        Type::RESERVE => Some(("reserve", operation.reserve.is_set())),
        Type::UNRESERVE => Some(("unreserve", operation.unreserve.is_set())),
        Type::CREATE => Some(("create", operation.create.is_set())),
        Type::DESTROY => Some(("destroy", operation.destroy.is_set())),
        Type::GROW_VOLUME => Some(("grow_volume", operation.grow_volume.is_set())),
        Type::SHRINK_VOLUME => Some(("shrink_volume", operation.shrink_volume.is_set())),
        Type::CREATE_DISK => Some(("create_disk", operation.create_disk.is_set())),
        Type::DESTROY_DISK => Some(("destroy_disk", operation.destroy_disk.is_set())),
        Type::UNKNOWN => None,
    }
}

pub(crate) fn is_launch(operation: &Message) -> bool {
    matches!(operation.r#type, Some(Type::LAUNCH | Type::LAUNCH_GROUP))
}

/// The parsed change of resources; `None` for launches and unknown operations.
fn conversion(
    master: &Master,
    accepted: &AcceptedOffers,
    message: &Message,
) -> Result<Option<Operation>, String> {
    match message.r#type.unwrap_or(Type::UNKNOWN) {
        Type::LAUNCH | Type::LAUNCH_GROUP | Type::UNKNOWN => Ok(None),
        Type::CREATE_DISK | Type::DESTROY_DISK => {
            Err("No agent has a resource provider that could carry it out".into())
        }
        Type::RESERVE
        | Type::UNRESERVE
        | Type::CREATE
        | Type::DESTROY
        | Type::GROW_VOLUME
        | Type::SHRINK_VOLUME => {
            let operation = parse(message)?;
            against_state(master, accepted, &operation)?;
            Ok(Some(operation))
        }
    }
}

/// A change of resources, parsed.
pub(crate) fn parse(message: &Message) -> Result<Operation, String> {
    let operation = Operation::from_proto(message).map_err(|why| why.to_string())?;
    operation.ok_or_else(|| "It does not convert resources".into())
}

fn against_state(master: &Master, accepted: &AcceptedOffers, operation: &Operation) -> Result<(), String> {
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
    validate::operation::operation(&scene, operation)?;
    description_has_room(agent, operation, master.config.limits.agent_info)
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
    validate::operation::operation(&scene, operation)?;
    description_has_room(agent, operation, master.config.limits.agent_info)
}

/// Everything of a description but its AgentInfo and resources, and what each resource takes beside its own bytes.
const DESCRIPTION_BYTES: usize = 1024;
const ENTRY_BYTES: usize = 8;

/// Rejects an operation after which the master would reject the agent the next time it registers.
fn description_has_room(agent: &Agent, operation: &Operation, bytes_max: usize) -> Result<(), String> {
    // Resources that the agent does not have are rejected later.
    let Ok(total) = agent.total.apply(&operation.clone().unallocate()) else { return Ok(()) };
    let bytes = description_bytes(agent, &total);
    // A limit that was lowered does not prevent operations that make the description shorter.
    match bytes <= bytes_max || bytes <= description_bytes(agent, &agent.total) {
        true => Ok(()),
        false => Err(format!(
            "The description of the agent would take {bytes} bytes with its 'resources', more than the limit of \
             {bytes_max} (--max_agent_info_size)"
        )),
    }
}

fn description_bytes(agent: &Agent, total: &Resources) -> usize {
    let entries = total.iter().map(|resource| ENTRY_BYTES + wire::size(&resource.to_proto(Format::Post)));
    DESCRIPTION_BYTES + wire::size(&*agent.info) + entries.sum::<usize>()
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

    fn executor(&self, id: &ExecutorId) -> Option<RunningExecutor<'_>> {
        let key: (FrameworkId, ExecutorId) = (self.framework.id.clone(), id.clone());
        let executor = self.agent.executors.get(&key)?;
        Some(RunningExecutor { info: &executor.info, resources: &executor.resources })
    }

    fn shares_cgroups(&self, id: &ExecutorId) -> Option<bool> {
        self.framework.shares_cgroups.get(id).copied()
    }
}
