//! The answers to reads that fit on one screen.

use tepui_authz::Action;
use tepui_core_master::{State, cluster_status};
use tepui_http::{HttpError, Request};
use tepui_program::classic;
use tepui_program::operator::flag_list;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::master::{Response as Answer, response};

use crate::program::Program;
use crate::read;

pub(super) fn answer(program: &Program, kind: Type, request: &Request) -> Result<Answer, HttpError> {
    if let Some(action) = needed(kind) {
        program.documents.allowed(request, action, None)?;
    }
    let state = program.documents.visible_to(request);
    let mut answer = Answer::default();
    match kind {
        Type::GET_HEALTH => {
            answer.r#type = Some(response::Type::GET_HEALTH);
            answer.get_health = response::GetHealth { healthy: true, ..Default::default() }.into();
        }
        Type::GET_FLAGS => {
            let flags = flag_list(&program.process.info.flags);
            answer.r#type = Some(response::Type::GET_FLAGS);
            answer.get_flags = response::GetFlags { flags, ..Default::default() }.into();
        }
        Type::GET_VERSION => {
            let version_info = classic::version_info().into();
            answer.r#type = Some(response::Type::GET_VERSION);
            answer.get_version = response::GetVersion { version_info, ..Default::default() }.into();
        }
        Type::GET_LOGGING_LEVEL => {
            answer.r#type = Some(response::Type::GET_LOGGING_LEVEL);
            let level = program.process.logging.level();
            answer.get_logging_level = response::GetLoggingLevel { level, ..Default::default() }.into();
        }
        Type::GET_OPERATIONS => {
            answer.r#type = Some(response::Type::GET_OPERATIONS);
            answer.get_operations = operations(&state).into();
        }
        Type::GET_WEIGHTS => {
            answer.r#type = Some(response::Type::GET_WEIGHTS);
            answer.get_weights = weights(&state).into();
        }
        Type::GET_QUOTA => {
            let status = read::quota::status(&state).into();
            answer.r#type = Some(response::Type::GET_QUOTA);
            answer.get_quota = response::GetQuota { status, ..Default::default() }.into();
        }
        Type::GET_MAINTENANCE_STATUS => {
            let status = cluster_status(&state).into();
            answer.r#type = Some(response::Type::GET_MAINTENANCE_STATUS);
            answer.get_maintenance_status =
                response::GetMaintenanceStatus { status, ..Default::default() }.into();
        }
        Type::GET_MAINTENANCE_SCHEDULE => {
            let schedule = (*state.schedule).clone().into();
            answer.r#type = Some(response::Type::GET_MAINTENANCE_SCHEDULE);
            answer.get_maintenance_schedule =
                response::GetMaintenanceSchedule { schedule, ..Default::default() }.into();
        }
        // GET_MASTER; the caller asks for nothing else.
        _ => {
            let get_master = response::GetMaster {
                master_info: (*state.master_info).clone().into(),
                start_time: Some(state.started_at.as_secs_f64()),
                elected_time: Some(state.elected_at.as_secs_f64()),
                ..Default::default()
            };
            answer.r#type = Some(response::Type::GET_MASTER);
            answer.get_master = get_master.into();
        }
    }
    Ok(answer)
}

/// What a read needs as a whole; the others show what their reader may see.
fn needed(kind: Type) -> Option<Action> {
    match kind {
        Type::GET_FLAGS => Some(Action::ViewFlags),
        Type::GET_MAINTENANCE_STATUS => Some(Action::GetMaintenanceStatus),
        Type::GET_MAINTENANCE_SCHEDULE => Some(Action::GetMaintenanceSchedule),
        _ => None,
    }
}

fn operations(state: &State) -> response::GetOperations {
    let operations = state.agents.values().flat_map(|agent| agent.operations.values());
    let operations = operations.map(|operation| operation.operation.clone()).collect();
    response::GetOperations { operations, ..Default::default() }
}

fn weights(state: &State) -> response::GetWeights {
    let weight = |(role, weight): (&String, &f64)| pb::WeightInfo {
        role: Some(role.clone()),
        weight: *weight,
        ..Default::default()
    };
    response::GetWeights { weight_infos: state.weights.iter().map(weight).collect(), ..Default::default() }
}
