//! Users are authorized: no container of a framework runs as a user that the framework may not use.

use std::collections::{BTreeMap, BTreeSet};

use tepui_types::ContainerId;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct UsersAreAuthorized {
    /// Frameworks that may only use the user `nobody`.
    untrusted: BTreeSet<String>,
    /// The frameworks of executors' containers.
    owners: BTreeMap<ContainerId, String>,
}

impl Check for UsersAreAuthorized {
    fn name(&self) -> &'static str {
        "users_are_authorized"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::FrameworkIs { id, untrusted: true, .. } => drop(self.untrusted.insert((*id).into())),
            Fact::ContainerRuns { spec, agent } => {
                if let Some(framework) = spec.environment.get("MESOS_FRAMEWORK_ID") {
                    self.owners.insert(spec.id.clone(), framework.clone());
                }
                let owner = self.owners.get(spec.id.top());
                let is_held = owner.is_some_and(|owner| self.untrusted.contains(owner));
                let user = spec.user.as_deref().unwrap_or("the agent's own user");
                if is_held && user != "nobody" {
                    return Err(format!("container {} on A{agent} runs as {user}", spec.id));
                }
            }
            _ => (),
        }
        Ok(())
    }
}
