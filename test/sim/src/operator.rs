//! Operators that change the running cluster: weights, quotas, maintenance, reservations, deactivated agents. While healing
//! they revert changes that prevent it.

use std::collections::BTreeSet;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::machine_info::Mode;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{self, Type};
use tepui_resources::Format;
use tepui_types::AgentId;

use crate::chance::{SECOND, between, pick};
use crate::check::Fact;
use crate::framework;
use crate::master::operator_call;
use crate::net::Node;
use crate::world::World;

const ROLES: [&str; 3] = ["role0", "role0/sub", "role1"];

/// One random change; its outcome does not matter.
pub(crate) fn change(world: &mut World) {
    world.counts.operator_calls += 1;
    let call = match world.rng.below(12) {
        0 => weights(world),
        1 | 2 => quota(world),
        3 => schedule(world),
        4 => machines(world),
        5 => drain(world),
        6 => deactivate(world),
        7 | 8 => reserve(world),
        9 => unreserve(world),
        10 => volumes(world),
        _ => reactivate(world),
    };
    if let Some(call) = call {
        operator_call(world, call);
    }
}

fn of(r#type: Type) -> Call {
    Call { r#type: Some(r#type), ..Default::default() }
}

fn weights(world: &mut World) -> Option<Call> {
    let mut weight_infos = Vec::new();
    for role in ROLES {
        let weight = between(&mut world.rng, 1, 6) as f64 / 2.0;
        weight_infos.push(pb::WeightInfo { role: Some(role.into()), weight, ..Default::default() });
    }
    let update = call::UpdateWeights { weight_infos, ..Default::default() };
    Some(Call { update_weights: update.into(), ..of(Type::UPDATE_WEIGHTS) })
}

fn quota(world: &mut World) -> Option<Call> {
    let role = if world.rng.chance(0.5) { "role0" } else { "role1" };
    let limit = between(&mut world.rng, 0, 6) as f64 / 2.0;
    let guarantee = if world.rng.chance(0.5) { limit } else { 0.0 };
    Some(quota_of(role, Some((guarantee, limit))))
}

fn quota_of(role: &str, amounts: Option<(f64, f64)>) -> Call {
    let cpus = |value| [("cpus".into(), pb::value::Scalar { value, ..Default::default() })];
    let config = pb::quota::QuotaConfig {
        role: role.into(),
        guarantees: amounts.into_iter().flat_map(|(guarantee, _)| cpus(guarantee)).collect(),
        limits: amounts.into_iter().flat_map(|(_, limit)| cpus(limit)).collect(),
        ..Default::default()
    };
    let update = call::UpdateQuota { force: Some(true), quota_configs: vec![config], ..Default::default() };
    Call { update_quota: update.into(), ..of(Type::UPDATE_QUOTA) }
}

fn machine(index: usize) -> pb::MachineID {
    pb::MachineID {
        hostname: Some(format!("host{index}")),
        ip: Some(format!("10.0.1.{index}")),
        ..Default::default()
    }
}

/// Schedules some machines; those that are down stay in the schedule.
fn schedule(world: &mut World) -> Option<Call> {
    let down = machines_in(world, Mode::DOWN);
    let mut machine_ids = Vec::new();
    for index in 0..world.agents.len() {
        if down.contains(&index) || world.rng.chance(0.4) {
            machine_ids.push(machine(index));
        }
    }
    let start = world.wall_of(Node::Master(world.leading().unwrap_or(0))).0 as i64
        + between(&mut world.rng, 0, 60 * SECOND) as i64;
    Some(schedule_of(machine_ids, start))
}

fn schedule_of(machine_ids: Vec<pb::MachineID>, start: i64) -> Call {
    let start = pb::TimeInfo { nanoseconds: start, ..Default::default() };
    let unavailability = pb::Unavailability { start: start.into(), ..Default::default() };
    let window =
        pb::maintenance::Window { machine_ids, unavailability: unavailability.into(), ..Default::default() };
    let windows = if window.machine_ids.is_empty() { vec![] } else { vec![window] };
    let schedule = pb::maintenance::Schedule { windows, ..Default::default() };
    let update = call::UpdateMaintenanceSchedule { schedule: schedule.into(), ..Default::default() };
    Call { update_maintenance_schedule: update.into(), ..of(Type::UPDATE_MAINTENANCE_SCHEDULE) }
}

/// The machines that are in this mode, by the numbers of their agents.
fn machines_in(world: &World, mode: Mode) -> BTreeSet<usize> {
    let Some(master) = world.leader() else { return BTreeSet::new() };
    let infos = master.state().machines.values().filter(|info| info.mode == Some(mode));
    let number = |info: &pb::MachineInfo| info.id.hostname.as_deref()?.strip_prefix("host")?.parse().ok();
    infos.filter_map(|info| number(info)).collect()
}

/// Starts maintenance of one machine, or ends it for all that are down.
fn machines(world: &mut World) -> Option<Call> {
    let draining: Vec<usize> = machines_in(world, Mode::DRAINING).into_iter().collect();
    match pick(&mut world.rng, &draining) {
        Some(index) if world.rng.chance(0.7) => {
            let start = call::StartMaintenance { machines: vec![machine(*index)], ..Default::default() };
            Some(Call { start_maintenance: start.into(), ..of(Type::START_MAINTENANCE) })
        }
        Some(_) | None => up(world),
    }
}

fn up(world: &World) -> Option<Call> {
    let machines: Vec<pb::MachineID> = machines_in(world, Mode::DOWN).into_iter().map(machine).collect();
    let stop = call::StopMaintenance { machines, ..Default::default() };
    (!stop.machines.is_empty()).then(|| Call { stop_maintenance: stop.into(), ..of(Type::STOP_MAINTENANCE) })
}

/// Any agent known to the master.
fn any_agent(world: &mut World) -> Option<AgentId> {
    let state = world.leader()?.state();
    let recovered = state.recovered_agents.keys();
    let ids: Vec<AgentId> =
        state.agents.keys().chain(recovered).chain(state.unreachable_agents.keys()).cloned().collect();
    pick(&mut world.rng, &ids).cloned()
}

fn drain(world: &mut World) -> Option<Call> {
    let id = any_agent(world)?;
    let seconds = Some(between(&mut world.rng, 0, 5) as i64);
    let period = tepui_proto::google::protobuf::Duration { seconds, ..Default::default() };
    let drain = call::DrainAgent {
        agent_id: id.to_proto().into(),
        max_grace_period: world.rng.chance(0.5).then_some(period).into(),
        mark_gone: Some(world.rng.chance(0.2)),
        ..Default::default()
    };
    Some(Call { drain_agent: drain.into(), ..of(Type::DRAIN_AGENT) })
}

fn deactivate(world: &mut World) -> Option<Call> {
    let deactivate =
        call::DeactivateAgent { agent_id: any_agent(world)?.to_proto().into(), ..Default::default() };
    Some(Call { deactivate_agent: deactivate.into(), ..of(Type::DEACTIVATE_AGENT) })
}

/// Some memory or disk for a role, wherever it is: offers that hold it are taken back.
fn reserve(world: &mut World) -> Option<Call> {
    let id = any_agent(world)?;
    let role = *pick(&mut world.rng, &ROLES)?;
    let name = if world.rng.chance(0.5) { "mem" } else { "disk" };
    let mut resource = tepui_client::shorthand::scalar(name, 32.0);
    resource.reservations.push(pb::resource::ReservationInfo {
        r#type: Some(pb::resource::reservation_info::Type::DYNAMIC),
        role: Some(role.into()),
        ..Default::default()
    });
    let reserve = call::ReserveResources {
        agent_id: id.to_proto().into(),
        resources: vec![resource],
        ..Default::default()
    };
    Some(Call { reserve_resources: reserve.into(), ..of(Type::RESERVE_RESOURCES) })
}

/// A dynamically reserved resource of an agent that satisfies `is_it`.
fn reserved(world: &mut World, is_it: fn(&pb::Resource) -> bool) -> Option<(AgentId, pb::Resource)> {
    let state = world.leader()?.state();
    let dynamic = |resource: &pb::Resource| {
        let last = resource.reservations.last().and_then(|reservation| reservation.r#type);
        last == Some(pb::resource::reservation_info::Type::DYNAMIC)
    };
    let mut found = Vec::new();
    for agent in state.agents.values() {
        // Those of a service are its own: its records name them.
        let is_labelled = |one: &pb::Resource| one.reservations.iter().any(|own| own.labels.is_set());
        let all = agent.total.to_proto(Format::Post).into_iter().filter(|one| !is_labelled(one));
        found.extend(all.filter(|one| dynamic(one) && is_it(one)).map(|one| (agent.id.clone(), one)));
    }
    pick(&mut world.rng, &found).cloned()
}

fn is_volume(resource: &pb::Resource) -> bool {
    resource.disk.persistence.is_set()
}

/// Unreserves a resource that is not in use.
fn unreserve(world: &mut World) -> Option<Call> {
    let (id, resource) = reserved(world, |resource| !is_volume(resource))?;
    let unreserve = call::UnreserveResources {
        agent_id: id.to_proto().into(),
        resources: vec![resource],
        ..Default::default()
    };
    Some(Call { unreserve_resources: unreserve.into(), ..of(Type::UNRESERVE_RESOURCES) })
}

/// Creates a volume on a reserved disk, or destroys an unused one.
fn volumes(world: &mut World) -> Option<Call> {
    if world.rng.chance(0.4) {
        let (id, volume) = reserved(world, is_volume)?;
        // It may be destroyed from now on; the answer is not awaited.
        world.checks.observe(&Fact::VolumeUnwanted { volume: &volume.disk.persistence.id });
        let destroy = call::DestroyVolumes {
            agent_id: id.to_proto().into(),
            volumes: vec![volume],
            ..Default::default()
        };
        return Some(Call { destroy_volumes: destroy.into(), ..of(Type::DESTROY_VOLUMES) });
    }
    let is_disk = |resource: &pb::Resource| resource.name == "disk" && !resource.disk.is_set();
    let (id, mut disk) = reserved(world, is_disk)?;
    disk.disk = framework::volume(format!("operators-{}", world.counts.operator_calls)).into();
    let create =
        call::CreateVolumes { agent_id: id.to_proto().into(), volumes: vec![disk], ..Default::default() };
    Some(Call { create_volumes: create.into(), ..of(Type::CREATE_VOLUMES) })
}

fn reactivate(world: &mut World) -> Option<Call> {
    any_agent(world).map(|id| reactivate_one(&id))
}

fn reactivate_one(id: &AgentId) -> Call {
    let reactivate = call::ReactivateAgent { agent_id: id.to_proto().into(), ..Default::default() };
    Call { reactivate_agent: reactivate.into(), ..of(Type::REACTIVATE_AGENT) }
}

/// Reverts changes that prevent healing. Repeated until it succeeds: draining agents cannot be reactivated yet.
pub(crate) fn revert_changes(world: &mut World) {
    let Some(master) = world.leader() else { return };
    let state = master.state();
    let is_draining = |drain: &pb::DrainInfo| drain.state == pb::DrainState::DRAINING;
    let idle = |agent: &tepui_core_master::Agent| {
        agent.deactivated && !agent.drain.as_ref().is_some_and(|drain| is_draining(&drain.info))
    };
    let idle = state.agents.values().filter(|agent| idle(agent));
    let mut calls: Vec<Call> = idle.map(|agent| reactivate_one(&agent.id)).collect();
    calls.extend(state.quotas.keys().map(|role| quota_of(role, None)));
    calls.extend(up(world));
    if !state.schedule.windows.is_empty() && machines_in(world, Mode::DOWN).is_empty() {
        calls.push(schedule_of(vec![], 0));
    }
    calls.into_iter().for_each(|call| operator_call(world, call));
}
