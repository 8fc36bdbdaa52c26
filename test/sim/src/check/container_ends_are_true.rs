//! Container ends are true: at rest, a container that has terminated shows the state and the reason of its task's own terminal
//! update, however often the master was asked. A task that adopted nothing leaves its container the end that it had. An update
//! that was not acknowledged may be lost: its agent can be marked as gone before it resends it.

use std::collections::{BTreeMap, BTreeSet};

use tepui_proto::mesos::v1::TaskStatus;
use tepui_swarm::{Effect, Phase};
use tepui_types::TaskStateExt;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct ContainerEndsAreTrue {
    /// Terminal updates that were delivered, by their UUIDs.
    delivered: BTreeMap<Vec<u8>, (String, Option<String>)>,
    /// Those that were acknowledged, by task.
    ends: BTreeMap<String, (String, Option<String>)>,
    /// Tasks that were to adopt a container.
    adopting: BTreeSet<String>,
}

impl Check for ContainerEndsAreTrue {
    fn name(&self) -> &'static str {
        "container_ends_are_true"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::SwarmEffect(Effect::Accept(launch)) if launch.adopt.is_some() => {
                self.adopting.insert(launch.task.as_str().into());
            }
            Fact::FrameworkSees { status, .. } if status.state.is_terminal() => {
                if let Some(uuid) = &status.uuid {
                    self.delivered.insert(uuid.clone(), end(status));
                }
            }
            Fact::SwarmEffect(Effect::Acknowledge { task, uuid, .. }) => {
                if let Some(end) = self.delivered.get(uuid) {
                    self.ends.insert(task.as_str().into(), end.clone());
                }
            }
            Fact::SwarmRests(view) => {
                for container in view.containers.values().filter(|it| !self.adopting.contains(&it.task)) {
                    let Phase::Ended { state, reason, .. } = &container.phase else { continue };
                    let Some(expected) = self.ends.get(&container.task) else { continue };
                    if (state, reason) != (&expected.0, &expected.1) {
                        return Err(format!(
                            "{} shows {state} {reason:?}, its task terminated with {expected:?}",
                            container.task
                        ));
                    }
                }
            }
            _ => (),
        }
        Ok(())
    }
}

fn end(status: &TaskStatus) -> (String, Option<String>) {
    (format!("{:?}", status.state), status.reason.map(|reason| format!("{reason:?}")))
}
