//! LAUNCH_NESTED_CONTAINER_SESSION, ATTACH_CONTAINER_OUTPUT and ATTACH_CONTAINER_INPUT: a container's input and output
//! as streams of messages.
//!
//! The machine decides whether a session may be; the bytes go past it, between the peer and the container's supervisor.
//! Nothing is buffered here beyond a piece each way: a peer that reads slowly makes the supervisor wait, under its limits.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tepui_container::{AttachFault, Input as Typing, Output, Piece};
use tepui_core_agent::{Input, Sender, State};
use tepui_http::{Body, ChunkSender, Encoding, HttpError, Request, Response, StreamForm, empty, parse_call};
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_proto::mesos::v1::agent::call::attach_container_input::Type as Step;
use tepui_proto::mesos::v1::agent::process_io::{self, control, data};
use tepui_proto::mesos::v1::agent::{Call, ProcessIO};
use tepui_proto::recordio::{self, Decoder};
use tepui_runtime::Handle;
use tepui_types::{ConnId, ContainerId};

use crate::audit;
use crate::program::{Kind, Program, stopping};

/// The largest record of typed input.
const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// Limit of the time until a client of the input names its container.
const FIRST_RECORD_SECS_MAX: u64 = 60;

/// Launches the container of a session and streams what it writes. It lives as long as the stream.
pub(super) async fn launch_session(
    program: &Program,
    request: &Request,
    (sender, call): (Sender, Call),
    form: StreamForm,
) -> Result<Response, HttpError> {
    let id = ContainerId::from(&*call.launch_nested_container_session.container_id);
    let exchange = program.exchanges.begin(Kind::Operator, form.encoding, request);
    let session = Session { conn: exchange.conn, handle: program.handle.clone() };
    let input = Input::Operator { conn: exchange.conn, sender, call: Box::new(call) };
    program.handle.send(input).await.map_err(stopping)?;
    let answer = exchange.answered().await;
    if answer.status() != StatusCode::OK {
        return Ok(answer);
    }
    let output = program.containerizer.attach_output(&id).await.map_err(refusal)?;
    Ok(stream(program, output, form, Some(session)))
}

/// Streams what a container writes from now on.
pub(super) async fn output(
    program: &Program,
    state: &State,
    (sender, call): (Sender, Call),
    form: StreamForm,
) -> Result<Response, HttpError> {
    program.access.authorize(state, &sender, &call)?;
    let id = known(state, &ContainerId::from(&*call.attach_container_output.container_id))?;
    let output = program.containerizer.attach_output(&id).await.map_err(refusal)?;
    Ok(stream(program, output, form, None))
}

/// Types what the records of the request say into a container, until they or its output come to an end.
pub(super) async fn input(
    program: &Program,
    mut request: Request,
    encoding: Encoding,
    form: StreamForm,
) -> Result<Response, HttpError> {
    let mut decoder = Decoder::new(RECORD_BYTES_MAX);
    let patience = Duration::from_secs(FIRST_RECORD_SECS_MAX);
    let first = tokio::time::timeout(patience, next_record(&mut request, &mut decoder, encoding)).await;
    let late = HttpError::new(StatusCode::REQUEST_TIMEOUT, "The first record did not come in time");
    let call = first.map_err(|_| late)??;
    let call = call.ok_or_else(|| HttpError::bad_request("Received EOF while reading request body"))?;
    let kind = super::shape::check(&call).map_err(invalid)?;
    if kind != Type::ATTACH_CONTAINER_INPUT {
        let name = kind.proto_name();
        let words = format!("Streaming 'Content-Type' application/recordio is not supported for {name} call");
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
    }
    if form.is_named {
        return Err(super::no_stream(kind));
    }
    let asked = &call.attach_container_input;
    if asked.r#type != Some(Step::CONTAINER_ID) || asked.container_id.is_unset() {
        return Err(invalid("Expecting 'attach_container_input.container_id' to be present"));
    }
    let state = program.state();
    audit::note_operator(&request, &call);
    program.access.authorize(&state, &program.access.sender(&state, &request, &call), &call)?;
    let id = known(&state, &ContainerId::from(&*asked.container_id))?;
    let mut typing = program.containerizer.attach_input(&id).await.map_err(refusal)?;
    // The answer comes when the session is over.
    request.witness(&program.process.audit).allow();
    loop {
        tokio::select! {
            ended = typing.ended() => {
                ended.map_err(refusal)?;
                return Ok(empty(StatusCode::OK));
            }
            record = next_record(&mut request, &mut decoder, encoding) => match record? {
                Some(call) => type_in(&mut typing, &call).await?,
                None => {
                    typing.finish().await.map_err(refusal)?;
                    return Ok(empty(StatusCode::OK));
                }
            }
        }
    }
}

/// The next record of a request; `None` at its end. Safe to abandon.
async fn next_record(
    request: &mut Request,
    decoder: &mut Decoder,
    encoding: Encoding,
) -> Result<Option<Call>, HttpError> {
    loop {
        match decoder.next() {
            Some(Ok(record)) => return parse_call(encoding, Bytes::from(record)).map(Some),
            Some(Err(err)) => return Err(invalid(format!("Failed to decode the request's records: {err}"))),
            None => (),
        }
        match request.next_piece().await {
            Some(Ok(piece)) => decoder.push(&piece),
            Some(Err(err)) => return Err(invalid(format!("Failed to read the body: {err}"))),
            None => return decoder.finish().map(|()| None).map_err(|err| invalid(err.to_string())),
        }
    }
}

/// Applies one record.
async fn type_in(typing: &mut Typing, call: &Call) -> Result<(), HttpError> {
    let asked = &call.attach_container_input;
    if call.r#type != Some(Type::ATTACH_CONTAINER_INPUT) || asked.r#type != Some(Step::PROCESS_IO) {
        return Err(invalid("Expecting 'attach_container_input.type' to be 'PROCESS_IO'"));
    }
    let io = &asked.process_io;
    let (data, control) = (&io.data, &io.control);
    let done = match (io.r#type, data.r#type, control.r#type) {
        (Some(process_io::Type::DATA), Some(data::Type::STDIN), _) => {
            match data.data.as_deref().unwrap_or_default() {
                [] => typing.writer.end().await,
                bytes => typing.writer.type_in(bytes).await,
            }
        }
        (Some(process_io::Type::CONTROL), _, Some(control::Type::HEARTBEAT)) => Ok(()),
        (Some(process_io::Type::CONTROL), _, Some(control::Type::TTY_INFO)) => {
            let size = &control.tty_info.window_size;
            if size.is_unset() {
                return Err(invalid("Expecting 'tty_info.window_size' to be present"));
            }
            let side = |cells: u32| u16::try_from(cells).unwrap_or(u16::MAX);
            typing.writer.resize(side(size.rows), side(size.columns)).await
        }
        _ => return Err(invalid("Only 'STDIN' data, 'TTY_INFO' and 'HEARTBEAT' can be sent to a container")),
    };
    match done {
        // Its supervisor has hung up; why comes from the other direction.
        Err(AttachFault::Lost(_)) => typing.ended().await.map_err(refusal),
        done => done.map_err(refusal),
    }
}

/// The container, if there is one that may be attached to.
fn known(state: &State, id: &ContainerId) -> Result<ContainerId, HttpError> {
    let executors = state.frameworks.values().flat_map(|framework| framework.executors.values());
    let mut live = executors.filter(|executor| !executor.is_terminated());
    let is_known = state.containers.get(id).is_some_and(|one| !one.is_ended())
        || live.any(|one| one.container_id == *id);
    match is_known {
        true => Ok(id.clone()),
        false => Err(HttpError::new(StatusCode::NOT_FOUND, format!("Container {id} cannot be found"))),
    }
}

fn refusal(fault: AttachFault) -> HttpError {
    let status = match &fault {
        AttachFault::Disabled | AttachFault::Lost(_) => StatusCode::INTERNAL_SERVER_ERROR,
        AttachFault::Busy => StatusCode::CONFLICT,
        AttachFault::NoTerminal => StatusCode::BAD_REQUEST,
    };
    HttpError::new(status, fault.to_string())
}

fn invalid(why: impl std::fmt::Display) -> HttpError {
    HttpError::bad_request(format!("Failed to validate agent::Call: {why}"))
}

/// Dropped when its client has gone away or its output is closed: then its container is destroyed.
#[derive(Debug)]
struct Session {
    conn: ConnId,
    handle: Handle<Input>,
}

impl Drop for Session {
    fn drop(&mut self) {
        let (conn, handle) = (self.conn, self.handle.clone());
        // If the state machine has terminated, the next start destroys the container.
        tokio::spawn(async move { handle.send(Input::OperatorClosed { conn }).await.ok() });
    }
}

/// The answer that carries a container's output.
fn stream(program: &Program, output: Output, form: StreamForm, session: Option<Session>) -> Response {
    let (sender, body) = Body::chunks();
    let every = program.http_heartbeat_interval;
    // Ends with the output, or when the peer is gone.
    tokio::spawn(pass_on(output, sender, form.encoding, every, session));
    let mut response = Response::new(body);
    response.headers_mut().extend(form.headers());
    response
}

async fn pass_on(
    mut output: Output,
    sender: ChunkSender,
    encoding: Encoding,
    every: Duration,
    session: Option<Session>,
) {
    let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    loop {
        let message = tokio::select! {
            piece = output.next() => match piece {
                Ok(Some(piece)) => of_piece(piece),
                Ok(None) => break,
                Err(fault) => {
                    // An end in the middle: the peer must not take it for the end of the output.
                    sender.send(Err(std::io::Error::other(fault))).await;
                    break;
                }
            },
            _ = beats.tick() => heartbeat(every),
            () = sender.closed() => break,
        };
        if !sender.send(Ok(recordio::encode(&encoding.encode(&message)).into())).await {
            break;
        }
    }
    drop(session);
}

fn of_piece(piece: Piece) -> ProcessIO {
    let (kind, bytes) = match piece {
        Piece::Stdout(bytes) => (data::Type::STDOUT, bytes),
        Piece::Stderr(bytes) => (data::Type::STDERR, bytes),
    };
    let data = process_io::Data { r#type: Some(kind), data: Some(bytes), ..Default::default() };
    ProcessIO { r#type: Some(process_io::Type::DATA), data: data.into(), ..Default::default() }
}

fn heartbeat(every: Duration) -> ProcessIO {
    let nanoseconds = i64::try_from(every.as_nanos()).unwrap_or(i64::MAX);
    let interval = tepui_proto::mesos::v1::DurationInfo { nanoseconds, ..Default::default() };
    let heartbeat = control::Heartbeat { interval: interval.into(), ..Default::default() };
    let control = process_io::Control {
        r#type: Some(control::Type::HEARTBEAT),
        heartbeat: heartbeat.into(),
        ..Default::default()
    };
    ProcessIO { r#type: Some(process_io::Type::CONTROL), control: control.into(), ..Default::default() }
}
