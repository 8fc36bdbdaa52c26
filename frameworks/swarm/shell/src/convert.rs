//! Between the v1 messages and what the machine takes and gives.

use std::time::Duration;

use tepui_client::scheduler::calls;
use tepui_client::shorthand::duration_info;
use tepui_client::v1::{
    self, CommandInfo, ExecutorInfo, Filters, FrameworkInfo, Label, Labels, Offer as WireOffer, TaskInfo,
    TaskStatus, executor_info, framework_info, task_status, value,
};
use tepui_docker::{ContainerReport, ContainerTask, MissingImage};
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_resources::{Format, Resources};
use tepui_swarm::{
    Attributes, EngineAddress, Launch, Manage, Offer, PORT_ATTRIBUTE, SOCKET_ATTRIBUTE, TASK_LABEL, Update,
};
use tepui_types::{AgentId, OfferId, TaskId};

/// How long the master keeps the containers of a manager that is gone.
const FAILOVER_TIMEOUT_SECS: f64 = 7.0 * 24.0 * 3600.0;
/// Time of an executor to stop its container, which the agent cannot kill. As long as the default grace period for borrowers.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// The framework's name, as in classic Swarm.
const FRAMEWORK_NAME: &str = "swarm";

pub fn framework(manage: &Manage, id: Option<&str>, hostname: &str, user: String) -> FrameworkInfo {
    use framework_info::capability::Type;
    let mut types = vec![Type::MULTI_ROLE, Type::PARTITION_AWARE, Type::RESERVATION_REFINEMENT];
    if manage.cluster.revocable {
        types.push(Type::REVOCABLE_RESOURCES);
    }
    let capability = |r#type| framework_info::Capability { r#type: Some(r#type), ..Default::default() };
    FrameworkInfo {
        id: id.map(|id| v1::FrameworkID { value: id.to_owned(), ..Default::default() }).into(),
        name: FRAMEWORK_NAME.to_owned(),
        user,
        hostname: Some(hostname.to_owned()),
        roles: manage.cluster.roles.clone(),
        checkpoint: Some(manage.cluster.checkpoint.unwrap_or(true)),
        failover_timeout: Some(FAILOVER_TIMEOUT_SECS),
        capabilities: types.into_iter().map(capability).collect(),
        ..Default::default()
    }
}

/// Where engines are, beyond what their offers say.
#[derive(Clone, Debug)]
pub struct Place {
    /// The name of this machine.
    pub hostname: String,
    pub tls: bool,
    /// The engine's Unix socket on agents that name none.
    pub socket: String,
}

impl Place {
    fn is_local(&self, hostname: &str) -> bool {
        let is_loopback = hostname.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        hostname == self.hostname || hostname == "localhost" || is_loopback
    }

    /// An error names what is wrong with the offer.
    pub fn offer(&self, offer: &WireOffer) -> Result<Offer, String> {
        let attribute =
            |name: &str| offer.attributes.iter().find(|it| it.name == name).and_then(attribute_text);
        let (port, socket) = (attribute(PORT_ATTRIBUTE), attribute(SOCKET_ATTRIBUTE));
        let attributes = Attributes {
            hostname: &offer.hostname,
            docker_port: port.as_deref(),
            docker_socket: socket.as_deref(),
        };
        let engine = EngineAddress::of_agent(attributes, self.is_local(&offer.hostname), self.tls)?;
        Ok(Offer {
            id: OfferId::new(offer.id.value.as_str()),
            agent: AgentId::new(offer.agent_id.value.as_str()),
            hostname: offer.hostname.clone(),
            engine,
            socket: socket.unwrap_or_else(|| self.socket.clone()),
            resources: Resources::from_proto(&offer.resources).map_err(|error| error.to_string())?,
        })
    }
}

/// A scalar is cut to a whole number.
fn attribute_text(attribute: &v1::Attribute) -> Option<String> {
    match (attribute.text.as_option(), attribute.scalar.as_option()) {
        (Some(text), _) => Some(text.value.clone()),
        (None, Some(scalar)) => Some(format!("{}", scalar.value.trunc())),
        (None, None) => None,
    }
}

pub fn update(status: &TaskStatus) -> Update {
    let held = || serde_json::from_slice::<ContainerReport>(status.data.as_deref()?).ok();
    let missing = || serde_json::from_slice::<MissingImage>(status.data.as_deref()?).ok();
    let by_executor = status.source == Some(task_status::Source::SOURCE_EXECUTOR);
    Update {
        task: TaskId::new(status.task_id.value.as_str()),
        agent: status.agent_id.as_option().map(|id| AgentId::new(id.value.as_str())),
        state: status.state,
        reason: status.reason,
        message: status.message.clone().unwrap_or_default(),
        uuid: status.uuid.clone(),
        container: held().map(|it| (it.id, it.name)),
        missing_image: missing().filter(|_| by_executor).map(|it| it.missing_image),
        by_executor,
        has_executor: status.executor_id.is_set(),
    }
}

/// The task of a container: our executor on the agent's machine, which creates and follows the container.
pub fn accept(launch: &Launch, binary: &str, user: &str) -> Call {
    let offers = launch.offers.iter().map(OfferId::to_proto);
    let launch_task = calls::launch(vec![task(launch, binary, user)]);
    calls::accept(offers, vec![launch_task], Some(filters(launch.refuse)))
}

pub fn decline(offers: &[OfferId], refuse: Option<Duration>) -> Call {
    calls::decline(offers.iter().map(OfferId::to_proto), refuse.map(filters))
}

fn filters(refuse: Duration) -> Filters {
    Filters { refuse_seconds: Some(refuse.as_secs_f64()), ..Default::default() }
}

fn task(launch: &Launch, binary: &str, user: &str) -> TaskInfo {
    let held = ContainerTask {
        socket: launch.socket.clone().into(),
        name: launch.name.clone().unwrap_or_default(),
        image: launch.image.clone(),
        document: serde_json::from_str(&launch.document).unwrap_or_default(),
        start: launch.start,
        label: format!("{TASK_LABEL}={}", launch.task),
        adopt: launch.adopt.clone(),
        is_orphan: launch.is_orphan,
    };
    let limit = |(name, amount): &(tepui_resources::Name, tepui_resources::Scalar)| {
        let value = amount.thousandths() as f64 / 1000.0;
        (name.to_string(), value::Scalar { value, ..Default::default() })
    };
    let name = launch.name.clone().unwrap_or_default();
    let label =
        Label { key: "SWARM_CONTAINER_NAME".to_owned(), value: Some(name.clone()), ..Default::default() };
    TaskInfo {
        name,
        task_id: launch.task.to_proto().into(),
        agent_id: launch.agent.to_proto().into(),
        resources: launch.resources.to_proto(Format::Post),
        limits: launch.limits.iter().map(limit).collect(),
        labels: Labels { labels: vec![label], ..Default::default() }.into(),
        executor: executor(launch, binary, user).into(),
        data: Some(serde_json::to_vec(&held).expect("a task is plain data")),
        ..Default::default()
    }
}

/// One per container, so that a container's end is its executor's end.
fn executor(launch: &Launch, binary: &str, user: &str) -> ExecutorInfo {
    let command = CommandInfo {
        shell: Some(false),
        value: Some(binary.to_owned()),
        arguments: [binary, "executor", "container"].map(str::to_owned).to_vec(),
        user: Some(user.to_owned()),
        ..Default::default()
    };
    ExecutorInfo {
        r#type: executor_info::Type::CUSTOM.into(),
        executor_id: v1::ExecutorID { value: launch.task.as_str().to_owned(), ..Default::default() }.into(),
        command: command.into(),
        name: Some("swarm container".to_owned()),
        shutdown_grace_period: duration_info(SHUTDOWN_GRACE).into(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
