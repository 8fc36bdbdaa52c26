//! Reservations and volumes made while the agent ran, applied again to the resources it was started with.

use alloc::format;
use alloc::string::ToString;

use tepui_proto::tepui::agent::v1 as stored;
use tepui_resources::{Resource, Resources};

use super::RecoverError;
use crate::Recover;
use crate::agent::Agent;

/// Puts what was reserved back in the place of what it was made of.
pub(super) fn restore(agent: &mut Agent, kept: Option<stored::StoredResources>) -> Result<(), RecoverError> {
    let Some(kept) = kept else { return Ok(()) };
    if agent.config.recover == Recover::Cleanup {
        return Ok(());
    }
    let kept =
        Resources::from_proto(&kept.kept).map_err(|err| RecoverError::Resources { why: err.to_string() })?;
    let mut total = agent.state.total.clone();
    for resource in kept.iter() {
        let origin = Resources::from(origin(resource.clone()));
        total = total.checked_sub(&origin).ok_or_else(|| RecoverError::Resources {
            why: format!("{} is not in {}", origin, agent.state.total),
        })?;
        total.insert(resource.clone());
    }
    agent.state.total = total;
    Ok(())
}

/// What a reserved resource or volume was before anything was done with it.
fn origin(resource: Resource) -> Resource {
    let mut plain = resource.without_volume();
    while plain.is_dynamically_reserved() {
        plain = plain.pop_reservation();
    }
    plain.with_shared(false)
}
