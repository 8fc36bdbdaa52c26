//! Events of an executor, as an enum: the protobuf event without its unset fields.

use tepui_proto::mesos::v1::executor::{self as wire, event::Type};
use tepui_proto::mesos::v1::{KillPolicy, TaskID, TaskInfo};

/// An event from the agent, or about the link to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Subscribed, or subscribed again after [`Event::Disconnected`].
    Subscribed(wire::event::Subscribed),
    /// The link is lost; the session subscribes again by itself.
    Disconnected,
    Launch(TaskInfo),
    LaunchGroup(Vec<TaskInfo>),
    Kill {
        task_id: TaskID,
        policy: Option<KillPolicy>,
    },
    /// The agent has stored an update; it will not be sent again.
    Acknowledged {
        task_id: TaskID,
        uuid: Vec<u8>,
    },
    Message(Vec<u8>),
    /// Kill all tasks, then exit. Also sent when the agent is unreachable for too long.
    Shutdown,
    /// The agent refused something for good.
    Error(String),
}

impl Event {
    /// `None` for a heartbeat, for an event of a newer agent, and for one whose content is missing.
    pub(super) fn from_wire(event: wire::Event) -> Option<Self> {
        Some(match event.r#type? {
            Type::SUBSCRIBED => Event::Subscribed(event.subscribed.into_option()?),
            Type::LAUNCH => Event::Launch(event.launch.into_option()?.task.into_option()?),
            Type::LAUNCH_GROUP => {
                Event::LaunchGroup(event.launch_group.into_option()?.task_group.into_option()?.tasks)
            }
            Type::KILL => {
                let kill = event.kill.into_option()?;
                Event::Kill { task_id: kill.task_id.into_option()?, policy: kill.kill_policy.into_option() }
            }
            Type::ACKNOWLEDGED => {
                let acknowledged = event.acknowledged.into_option()?;
                Event::Acknowledged { task_id: acknowledged.task_id.into_option()?, uuid: acknowledged.uuid }
            }
            Type::MESSAGE => Event::Message(event.message.into_option()?.data),
            Type::ERROR => Event::Error(event.error.into_option()?.message),
            Type::SHUTDOWN => Event::Shutdown,
            Type::HEARTBEAT | Type::UNKNOWN => return None,
        })
    }
}
