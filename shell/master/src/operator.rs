//! `/api/v1` of the master: reads are answered from the snapshot, changes and SUBSCRIBE go to the machine.

mod shape;

use http::StatusCode;
use tepui_core_master::{Input, State};
use tepui_http::{
    Encoding, HttpError, Request, Response, accepts, classic, encoded, message, read_call, text,
};
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::master::{Call, Response as Answer, response};

use crate::read::{self, Part};
use crate::routes::{Kind, Program, stopping};

pub(crate) async fn call(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    let call: Call = read_call(&mut request).await?;
    let kind = shape::check(&call)
        .map_err(|why| HttpError::bad_request(format!("Failed to validate master::Call: {why}")))?;
    let encoding = accepts(&request.headers)?;
    match kind {
        Type::UNKNOWN => Err(HttpError::plain(StatusCode::NOT_IMPLEMENTED)),
        Type::GET_HEALTH
        | Type::GET_FLAGS
        | Type::GET_VERSION
        | Type::GET_LOGGING_LEVEL
        | Type::GET_OPERATIONS
        | Type::GET_WEIGHTS
        | Type::GET_MASTER => Ok(message(encoding, &small(program, kind))),
        Type::GET_STATE => part(program, Part::State, encoding).await,
        Type::GET_AGENTS => part(program, Part::Agents, encoding).await,
        Type::GET_FRAMEWORKS => part(program, Part::Frameworks, encoding).await,
        Type::GET_EXECUTORS => part(program, Part::Executors, encoding).await,
        Type::GET_TASKS => part(program, Part::Tasks, encoding).await,
        // The master keeps no files that peers may read.
        Type::LIST_FILES | Type::READ_FILE => Ok(text(StatusCode::NOT_FOUND, "")),
        // The rest of the operators' side: reads that need more than the snapshot holds today.
        Type::GET_METRICS
        | Type::SET_LOGGING_LEVEL
        | Type::GET_ROLES
        | Type::GET_MAINTENANCE_STATUS
        | Type::GET_MAINTENANCE_SCHEDULE
        | Type::GET_QUOTA => Err(not_yet(kind)),
        Type::SUBSCRIBE
        | Type::UPDATE_WEIGHTS
        | Type::RESERVE_RESOURCES
        | Type::UNRESERVE_RESOURCES
        | Type::CREATE_VOLUMES
        | Type::DESTROY_VOLUMES
        | Type::GROW_VOLUME
        | Type::SHRINK_VOLUME
        | Type::UPDATE_MAINTENANCE_SCHEDULE
        | Type::START_MAINTENANCE
        | Type::STOP_MAINTENANCE
        | Type::DRAIN_AGENT
        | Type::DEACTIVATE_AGENT
        | Type::REACTIVATE_AGENT
        | Type::UPDATE_QUOTA
        | Type::SET_QUOTA
        | Type::REMOVE_QUOTA
        | Type::TEARDOWN
        | Type::MARK_AGENT_GONE => ask(program, &request, call, encoding).await,
    }
}

/// Lets the machine answer.
async fn ask(
    program: &Program,
    request: &Request,
    call: Call,
    encoding: Encoding,
) -> Result<Response, HttpError> {
    let exchange = program.exchanges.begin(Kind::Operator, encoding, request);
    let input = Input::Operator { conn: exchange.conn, principal: None, call: Box::new(call) };
    program.handle.send(input).await.map_err(stopping)?;
    Ok(exchange.answered().await)
}

/// A part of the state, rendered where it may take its time.
async fn part(program: &Program, part: Part, encoding: Encoding) -> Result<Response, HttpError> {
    let state = program.state();
    let rendering = tokio::task::spawn_blocking(move || read::answer(part, &state, encoding));
    let bytes = rendering.await.map_err(|err| {
        tracing::error!(%err, ?part, "cannot render an answer");
        HttpError::plain(StatusCode::INTERNAL_SERVER_ERROR)
    })?;
    Ok(encoded(encoding, bytes))
}

/// The answers that fit on one screen.
fn small(program: &Program, kind: Type) -> Answer {
    let state = program.state();
    let mut answer = Answer::default();
    match kind {
        Type::GET_HEALTH => {
            answer.r#type = Some(response::Type::GET_HEALTH);
            answer.get_health = response::GetHealth { healthy: true, ..Default::default() }.into();
        }
        Type::GET_FLAGS => {
            let flag = |(name, value): &(String, String)| pb::Flag {
                name: name.clone(),
                value: Some(value.clone()),
                ..Default::default()
            };
            let flags = program.flags.iter().map(flag).collect();
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
            answer.get_logging_level = response::GetLoggingLevel::default().into();
        }
        Type::GET_OPERATIONS => {
            answer.r#type = Some(response::Type::GET_OPERATIONS);
            answer.get_operations = operations(&state).into();
        }
        Type::GET_WEIGHTS => {
            answer.r#type = Some(response::Type::GET_WEIGHTS);
            answer.get_weights = weights(&state).into();
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
    answer
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

fn not_yet(kind: Type) -> HttpError {
    let message = format!("{} is not implemented by this master", kind.proto_name());
    HttpError::new(StatusCode::NOT_IMPLEMENTED, message)
}
