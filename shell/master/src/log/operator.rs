//! Lines about calls of operators: the change, and the principal.

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_resources::Resources;
use tracing::{info, warn};

/// Machines and roles that a line names; more are counted.
const NAMED_MAX: usize = 16;

/// What a call is about, as far as it has that.
#[derive(Default)]
pub(crate) struct Subject {
    event: &'static str,
    pub agent_id: Option<String>,
    pub framework_id: Option<String>,
    /// Roles with their new weights or quotas.
    pub roles: Option<String>,
    pub resources: Option<String>,
    pub machines: Option<String>,
}

pub(super) fn log(principal: Option<&str>, call: &Call, rejection: Option<&str>) {
    let r#type = call.r#type.unwrap_or(Type::UNKNOWN);
    let Subject { event, agent_id, framework_id, roles, resources, machines } = subject(r#type, call);
    match rejection {
        None => info!(principal, agent_id, framework_id, roles, resources, machines, "{event}"),
        Some(reason) => warn!(
            principal, call = ?r#type, agent_id, framework_id, roles, resources, machines, reason,
            "operator call rejected"
        ),
    }
}

pub(crate) fn subject(r#type: Type, call: &Call) -> Subject {
    let of = |event| Subject { event, ..Subject::default() };
    let on = |event, id: &pb::AgentID| Subject { agent_id: Some(id.value.clone()), ..of(event) };
    let with = |event, id: &pb::AgentID, resources: &[pb::Resource]| Subject {
        resources: Some(text(resources)),
        ..on(event, id)
    };
    match r#type {
        Type::TEARDOWN => Subject {
            framework_id: Some(call.teardown.framework_id.value.clone()),
            ..of("framework torn down")
        },
        Type::MARK_AGENT_GONE => on("agent marked gone", &call.mark_agent_gone.agent_id),
        Type::DRAIN_AGENT => on("agent drain started", &call.drain_agent.agent_id),
        Type::DEACTIVATE_AGENT => on("agent deactivated", &call.deactivate_agent.agent_id),
        Type::REACTIVATE_AGENT => on("agent reactivated", &call.reactivate_agent.agent_id),
        Type::UPDATE_WEIGHTS => Subject { roles: Some(weights(call)), ..of("weights updated") },
        Type::UPDATE_QUOTA => {
            let roles = call.update_quota.quota_configs.iter().map(quota);
            Subject { roles: Some(named(roles)), ..of("quota updated") }
        }
        Type::SET_QUOTA => {
            let request = &call.set_quota.quota_request;
            let (roles, resources) = (request.role.clone(), Some(text(&request.guarantee)));
            Subject { roles, resources, ..of("quota set") }
        }
        Type::REMOVE_QUOTA => Subject { roles: Some(call.remove_quota.role.clone()), ..of("quota removed") },
        Type::UPDATE_MAINTENANCE_SCHEDULE => {
            let windows = call.update_maintenance_schedule.schedule.windows.iter();
            let machines = machines(windows.flat_map(|window| &window.machine_ids));
            Subject { machines: Some(machines), ..of("maintenance schedule updated") }
        }
        Type::START_MAINTENANCE => {
            let machines = machines(&call.start_maintenance.machines);
            Subject { machines: Some(machines), ..of("maintenance started") }
        }
        Type::STOP_MAINTENANCE => {
            let machines = machines(&call.stop_maintenance.machines);
            Subject { machines: Some(machines), ..of("maintenance stopped") }
        }
        Type::RESERVE_RESOURCES | Type::UNRESERVE_RESOURCES => reservation(r#type, call, with),
        Type::CREATE_VOLUMES | Type::DESTROY_VOLUMES | Type::GROW_VOLUME | Type::SHRINK_VOLUME => {
            volumes(r#type, call, with)
        }
        _ => of("operator call"),
    }
}

fn reservation(
    r#type: Type,
    call: &Call,
    with: impl Fn(&'static str, &pb::AgentID, &[pb::Resource]) -> Subject,
) -> Subject {
    match r#type {
        Type::RESERVE_RESOURCES => {
            let call = &call.reserve_resources;
            with("resources reserved", &call.agent_id, &call.resources)
        }
        _ => {
            let call = &call.unreserve_resources;
            with("resources unreserved", &call.agent_id, &call.resources)
        }
    }
}

fn volumes(
    r#type: Type,
    call: &Call,
    with: impl Fn(&'static str, &pb::AgentID, &[pb::Resource]) -> Subject,
) -> Subject {
    match r#type {
        Type::CREATE_VOLUMES => {
            with("volumes created", &call.create_volumes.agent_id, &call.create_volumes.volumes)
        }
        Type::DESTROY_VOLUMES => {
            with("volumes destroyed", &call.destroy_volumes.agent_id, &call.destroy_volumes.volumes)
        }
        Type::GROW_VOLUME => {
            let volume = (*call.grow_volume.volume).clone();
            with("volume grown", &call.grow_volume.agent_id, &[volume])
        }
        _ => {
            let volume = (*call.shrink_volume.volume).clone();
            with("volume shrunk", &call.shrink_volume.agent_id, &[volume])
        }
    }
}

fn text(resources: &[pb::Resource]) -> String {
    Resources::from_proto(resources).map_or_else(|err| err.to_string(), |resources| resources.to_string())
}

fn quota(config: &QuotaConfig) -> String {
    let guarantees =
        config.guarantees.iter().map(|(name, amount)| format!(" guarantee {name}:{}", amount.value));
    let limits = config.limits.iter().map(|(name, amount)| format!(" limit {name}:{}", amount.value));
    let mut amounts: Vec<String> = guarantees.chain(limits).collect();
    amounts.sort();
    format!("{}{}", config.role, amounts.concat())
}

fn weights(call: &Call) -> String {
    let weight =
        |info: &pb::WeightInfo| format!("{}={}", info.role.as_deref().unwrap_or_default(), info.weight);
    named(call.update_weights.weight_infos.iter().map(weight))
}

fn machines<'a>(machines: impl IntoIterator<Item = &'a pb::MachineID>) -> String {
    let machine = |id: &pb::MachineID| match (&id.hostname, &id.ip) {
        (Some(hostname), Some(ip)) => format!("{hostname}/{ip}"),
        (one, other) => one.as_ref().or(other.as_ref()).cloned().unwrap_or_default(),
    };
    named(machines.into_iter().map(machine))
}

fn named(names: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = names.collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    let shown = all[..all.len() - more].join(",");
    if more == 0 { shown } else { format!("{shown},… ({more} more)") }
}
