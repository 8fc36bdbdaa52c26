//! `/api/v1` of the master: reads are answered from the snapshot, changes and SUBSCRIBE go to the machine.

mod shape;
mod small;

use http::StatusCode;
use tepui_authz::Action;
use tepui_core_master::Input;
use tepui_http::{Encoding, Exchange, HttpError, Request, Response, accepts, message, read_call_within};
use tepui_program::files;
use tepui_program::operator::set_logging_level;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::master::{Call, Response as Answer, response};

use crate::audit;
use crate::metrics::Form;
use crate::program::{Kind, Program};
use crate::read::Part;

/// The largest call of an operator: schedules, weights and quotas of large clusters fit, and are kept.
pub(crate) const CALL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The answer to operators while the disk is full or etcd is unreachable.
const STUCK: &str = "The registry cannot be written before its disk has room or its quorum is back";

pub(crate) async fn call(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    let call: Call = read_call_within(&mut request, CALL_BYTES_MAX).await?;
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
        | Type::GET_MASTER
        | Type::GET_QUOTA
        | Type::GET_MAINTENANCE_STATUS
        | Type::GET_MAINTENANCE_SCHEDULE => Ok(message(encoding, &small::answer(program, kind, &request)?)),
        Type::GET_STATE => program.documents.part(Part::State, encoding, &request).await,
        Type::GET_AGENTS => program.documents.part(Part::Agents, encoding, &request).await,
        Type::GET_FRAMEWORKS => program.documents.part(Part::Frameworks, encoding, &request).await,
        Type::GET_EXECUTORS => program.documents.part(Part::Executors, encoding, &request).await,
        Type::GET_TASKS => program.documents.part(Part::Tasks, encoding, &request).await,
        Type::GET_ROLES => program.documents.part(Part::Roles, encoding, &request).await,
        Type::GET_METRICS => program.metrics(Form::List(encoding), &request).await,
        Type::SET_LOGGING_LEVEL => {
            audit::note_operator(&request, &call);
            program.documents.allowed(&request, Action::SetLogLevel, None)?;
            let level = &call.set_logging_level;
            set_logging_level(&program.process.logging, level.level, level.duration.nanoseconds)
        }
        Type::LIST_FILES | Type::READ_FILE => {
            program.documents.allowed(&request, Action::AccessMesosLog, None)?;
            read_log(program, call, encoding).await
        }
        Type::SUBSCRIBE => {
            audit::note_operator(&request, &call);
            let exchange = begin_exchange(program, &request, call, encoding).await?;
            Ok(exchange.answered().await)
        }
        Type::UPDATE_WEIGHTS
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
        | Type::MARK_AGENT_GONE => submit(program, &request, call, encoding).await,
    }
}

/// Reads of the log's file.
async fn read_log(program: &Program, call: Call, encoding: Encoding) -> Result<Response, HttpError> {
    let attached = program.process.log.clone();
    let answer = files::looking(move || {
        let mut answer = Answer::default();
        if let Some(list) = call.list_files.as_option() {
            let file_infos = files::list(attached.as_slice(), &list.path)?;
            answer.r#type = Some(response::Type::LIST_FILES);
            answer.list_files = response::ListFiles { file_infos, ..Default::default() }.into();
        } else {
            let asked = &call.read_file;
            let (data, size) =
                files::read_part(attached.as_slice(), &asked.path, asked.offset, asked.length)?;
            answer.r#type = Some(response::Type::READ_FILE);
            answer.read_file = response::ReadFile { size, data, ..Default::default() }.into();
        }
        Ok(answer)
    });
    Ok(message(encoding, &answer.await?))
}

/// Sends a change to the machine and answers when it is durable. While nothing can be made durable, the caller gets
/// an error at once: the change may be applied later or not, as after a lost connection.
pub(crate) async fn submit(
    program: &Program,
    request: &Request,
    call: Call,
    encoding: Encoding,
) -> Result<Response, HttpError> {
    audit::note_operator(request, &call);
    let commits = &program.sensors.commits;
    if commits.is_stuck() {
        return Err(HttpError::unavailable(format!("{STUCK}; nothing was changed")));
    }
    let exchange = begin_exchange(program, request, call, encoding).await?;
    let conn = exchange.conn;
    let mut answered = std::pin::pin!(exchange.answered());
    tokio::select! {
        biased;
        answer = answered.as_mut() => return Ok(answer),
        () = commits.stuck() => {
            let unknown = || HttpError::unavailable(format!("{STUCK}; whether this is changed will show then"));
            program.exchanges.answer(conn, |_| unknown().into());
        }
    }
    Ok(answered.await)
}

/// Begins an exchange that the machine ends.
async fn begin_exchange(
    program: &Program,
    request: &Request,
    call: Call,
    encoding: Encoding,
) -> Result<Exchange<Kind>, HttpError> {
    let exchange = program.exchanges.begin(Kind::Operator, encoding, request);
    let input =
        Input::Operator { conn: exchange.conn, principal: request.principal_name(), call: Box::new(call) };
    program.send(input).await?;
    Ok(exchange)
}
