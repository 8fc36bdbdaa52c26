//! Operations that change resources: permissions of reservations, and required capabilities of the agent.
//!
//! `tepui_resources::Operation` has validated each operation alone; allocation roles are filled in. Whether the
//! offers contain the resources is checked when it is applied.

use alloc::format;
use alloc::string::{String, ToString};

use tepui_proto::mesos::v1::agent_info::capability::Type as AgentCapability;
use tepui_resources::{Format, Operation, Resource, validate};

use super::Scene;

pub(crate) fn operation(scene: &Scene<'_>, operation: &Operation) -> Result<(), String> {
    match operation {
        Operation::Reserve { source: _, resources } => {
            resources.iter().try_for_each(|resource| reserve(scene, resource))?;
            one_allocation(resources)
        }
        Operation::Unreserve { resources: _ } => Ok(()),
        Operation::Create { volumes } => {
            volumes.iter().try_for_each(|volume| create(scene, volume))?;
            new_ids(scene, volumes)?;
            one_allocation(volumes)
        }
        Operation::Destroy { volumes } => volumes.iter().try_for_each(|volume| destroy(scene, volume)),
        Operation::GrowVolume { volume, addition: _ } | Operation::ShrinkVolume { volume, subtract: _ } => {
            match scene.agent_capabilities.contains(&AgentCapability::RESIZE_VOLUME) {
                true => Ok(()),
                false => Err(format!(
                    "Volume {volume} cannot be resized: its agent has no RESIZE_VOLUME capability"
                )),
            }
        }
    }
}

fn reserve(scene: &Scene<'_>, resource: &Resource) -> Result<(), String> {
    known_to_agent(scene, resource)?;
    let by = resource.reservation().and_then(|reservation| reservation.principal.as_deref());
    made_by(scene, by, "reserve", "reservation.principal")?;
    for_own_role(scene, resource)
}

fn create(scene: &Scene<'_>, volume: &Resource) -> Result<(), String> {
    if volume.is_shared() && !scene.shared_resources {
        return Err(format!("Create of shared {volume} needs the framework capability SHARED_RESOURCES"));
    }
    known_to_agent(scene, volume)?;
    let persistence = volume.disk().and_then(|disk| disk.persistence.as_ref());
    let by = persistence.and_then(|persistence| persistence.principal.as_deref());
    made_by(scene, by, "create", "disk.persistence.principal")
}

fn destroy(scene: &Scene<'_>, volume: &Resource) -> Result<(), String> {
    let there = |resource: &Resource| resource.clone().with_allocation(None).is_same_kind(&bare(volume));
    if volume.provider().is_none() && !scene.total.iter().any(there) {
        return Err(format!("Persistent volume {volume} does not exist on the agent"));
    }
    match scene.used.iter().any(there) {
        true => Err(format!("Persistent volume {volume} is in use")),
        false => Ok(()),
    }
}

fn bare(resource: &Resource) -> Resource {
    resource.clone().with_allocation(None)
}

fn known_to_agent(scene: &Scene<'_>, resource: &Resource) -> Result<(), String> {
    let can = |capability| scene.agent_capabilities.contains(&capability);
    let nested = resource.reservation_role().is_some_and(|role| role.is_nested());
    if nested && !can(AgentCapability::HIERARCHICAL_ROLE) {
        return Err(format!("The agent of {resource} has no HIERARCHICAL_ROLE capability"));
    }
    match resource.is_refined() && !can(AgentCapability::RESERVATION_REFINEMENT) {
        true => Err(format!("The agent of {resource} has no RESERVATION_REFINEMENT capability")),
        false => Ok(()),
    }
}

/// An authenticated principal must be the principal of its reservations and volumes.
fn made_by(scene: &Scene<'_>, by: Option<&str>, what: &str, field: &str) -> Result<(), String> {
    match (scene.principal, by) {
        (None, _) => Ok(()),
        (Some(principal), Some(own)) if own == principal => Ok(()),
        (Some(principal), Some(own)) => {
            Err(format!("A {what} operation of principal '{principal}' has '{field}' set to '{own}'"))
        }
        (Some(principal), None) => {
            Err(format!("A {what} operation of principal '{principal}' must have '{field}' set to it"))
        }
    }
}

/// Frameworks reserve for the role they were offered the resources in; operators for any.
fn for_own_role(scene: &Scene<'_>, resource: &Resource) -> Result<(), String> {
    let Some(roles) = scene.roles else { return Ok(()) };
    let reserved = resource.reservation_role();
    if resource.allocation() != reserved {
        return Err(format!("Resource {resource} is reserved for another role than it is allocated to"));
    }
    match reserved.is_some_and(|role| roles.iter().any(|own| own == role.as_str())) {
        true => Ok(()),
        false => Err(format!("Resource {resource} is reserved for a role that the framework does not have")),
    }
}

fn one_allocation(resources: &[Resource]) -> Result<(), String> {
    let role = resources.first().and_then(Resource::allocation);
    match resources.iter().find(|resource| resource.allocation() != role) {
        Some(other) => {
            Err(format!("The resources are allocated to multiple roles: {} and {other}", resources[0]))
        }
        None => Ok(()),
    }
}

/// Ids of volumes are unique on an agent.
fn new_ids(scene: &Scene<'_>, volumes: &[Resource]) -> Result<(), String> {
    let mut all = scene.total.persistent_volumes().to_proto(Format::Post);
    all.extend(volumes.iter().map(|volume| bare(volume).to_proto(Format::Post)));
    validate::unique_persistence_ids(&all).map_err(|why| why.to_string())
}
