//! `/api/v1` of the agent: reads are answered from the snapshot and the sandboxes, containers are the machine's.

mod attach;
mod shape;

use http::StatusCode;
use tepui_authz::Action;
use tepui_core_agent::{Input, Sender};
use tepui_http::{Encoding, HttpError, Request, Response, accepts_stream, message, read_call, streamed_body};
use tepui_program::files;
use tepui_program::operator::set_logging_level;
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_proto::mesos::v1::agent::{Call, Response as Answer, response};

use crate::audit;
use crate::image_gc;
use crate::program::{Kind, Program, stopping};

pub(crate) async fn call(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    let state = program.state();
    let records = streamed_body(&request.headers)?;
    let form = accepts_stream(&request.headers)?;
    if let Some(records) = records {
        return attach::input(program, request, records, form).await;
    }
    let call: Call = read_call(&mut request).await?;
    let kind = shape::check(&call)
        .map_err(|why| HttpError::bad_request(format!("Failed to validate agent::Call: {why}")))?;
    let encoding = form.encoding;
    if form.is_named && !matches!(kind, Type::LAUNCH_NESTED_CONTAINER_SESSION | Type::ATTACH_CONTAINER_OUTPUT)
    {
        return Err(no_stream(kind));
    }
    audit::note_operator(&request, &call);
    let sender = program.access.sender(&state, &request, &call);
    match kind {
        Type::UNKNOWN => Err(HttpError::plain(StatusCode::NOT_IMPLEMENTED)),
        Type::GET_FLAGS => {
            program.access.allowed(&request, Action::ViewFlags, None)?;
            program.read(call, encoding, &request).await
        }
        Type::GET_HEALTH
        | Type::GET_VERSION
        | Type::GET_LOGGING_LEVEL
        | Type::GET_STATE
        | Type::GET_CONTAINERS
        | Type::GET_FRAMEWORKS
        | Type::GET_EXECUTORS
        | Type::GET_OPERATIONS
        | Type::GET_TASKS
        | Type::GET_AGENT
        | Type::GET_RESOURCE_PROVIDERS
        | Type::GET_METRICS => program.read(call, encoding, &request).await,
        Type::SET_LOGGING_LEVEL => {
            program.access.allowed(&request, Action::SetLogLevel, None)?;
            let level = &call.set_logging_level;
            set_logging_level(&program.process.logging, level.level, level.duration.nanoseconds)
        }
        Type::LIST_FILES | Type::READ_FILE => read_files(program, &request, call, encoding).await,
        Type::PRUNE_IMAGES => {
            program.access.allowed(&request, Action::PruneImages, None)?;
            image_gc::prune(&program.containerizer, program.image_gc.as_ref(), &call.prune_images).await
        }
        // What needs resource providers.
        Type::ADD_RESOURCE_PROVIDER_CONFIG
        | Type::UPDATE_RESOURCE_PROVIDER_CONFIG
        | Type::REMOVE_RESOURCE_PROVIDER_CONFIG
        | Type::MARK_RESOURCE_PROVIDER_GONE => Err(HttpError::not_implemented(kind.proto_name())),
        Type::LAUNCH_NESTED_CONTAINER_SESSION => {
            attach::launch_session(program, &request, (sender, call), form).await
        }
        Type::ATTACH_CONTAINER_OUTPUT => attach::output(program, &state, (sender, call), form).await,
        Type::ATTACH_CONTAINER_INPUT => Err(HttpError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Expecting 'Content-Type' to be application/recordio for ATTACH_CONTAINER_INPUT call",
        )),
        Type::LAUNCH_NESTED_CONTAINER
        | Type::WAIT_NESTED_CONTAINER
        | Type::KILL_NESTED_CONTAINER
        | Type::REMOVE_NESTED_CONTAINER
        | Type::LAUNCH_CONTAINER
        | Type::WAIT_CONTAINER
        | Type::KILL_CONTAINER
        | Type::REMOVE_CONTAINER => submit(program, &request, (sender, call), encoding).await,
    }
}

/// The answer to this call is no stream.
fn no_stream(kind: Type) -> HttpError {
    let words = format!("Streaming response is not supported for {} call", kind.proto_name());
    HttpError::new(StatusCode::NOT_ACCEPTABLE, words)
}

/// Lets the machine answer; for a wait that may take as long as the container runs.
async fn submit(
    program: &Program,
    request: &Request,
    (sender, call): (Sender, Call),
    encoding: Encoding,
) -> Result<Response, HttpError> {
    let exchange = program.exchanges.begin(Kind::Operator, encoding, request);
    let input = Input::Operator { conn: exchange.conn, sender, call: Box::new(call) };
    program.handle.send(input).await.map_err(stopping)?;
    Ok(exchange.answered().await)
}

/// Reads of sandboxes.
async fn read_files(
    program: &Program,
    request: &Request,
    call: Call,
    encoding: Encoding,
) -> Result<Response, HttpError> {
    let attached = program.attached_for(request);
    let answer = files::looking(move || {
        let attached = attached();
        let mut answer = Answer::default();
        if let Some(list) = call.list_files.as_option() {
            let file_infos = files::list(&attached, &list.path)?;
            answer.r#type = Some(response::Type::LIST_FILES);
            answer.list_files = response::ListFiles { file_infos, ..Default::default() }.into();
        } else {
            let asked = &call.read_file;
            let (data, size) = files::read_part(&attached, &asked.path, asked.offset, asked.length)?;
            answer.r#type = Some(response::Type::READ_FILE);
            answer.read_file = response::ReadFile { size, data, ..Default::default() }.into();
        }
        Ok(answer)
    });
    Ok(message(encoding, &answer.await?))
}
