//! Attached containers: run a command next to a task, receive the output of a container, send its input.
//!
//! Each direction is a request of its own. Absent: the user's terminal.

use bytes::Bytes;
use http::{HeaderName, header};
use http_body_util::channel::{Channel, Sender};
use tepui_proto::mesos::v1::ContainerID;
use tepui_proto::mesos::v1::agent::call::{LaunchNestedContainerSession, Type};
use tepui_proto::mesos::v1::agent::{Call, ProcessIO};
use tepui_proto::recordio;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval_at, timeout};

use super::session::{self, ContainerInput, ContainerOutput, HEARTBEAT_INTERVAL, Listener};
use super::{Client, PATH};
use crate::connection::{self, Connection, Request};
use crate::discovery;
use crate::fault::Fault;
use crate::format::Format;
use crate::stream::EventStream;

/// Streams of records, whatever the form of each.
const RECORDIO: &str = "application/recordio";
/// Limit of queued input; then the sender waits.
const SAID_QUEUE_MAX: usize = 64;

impl Client {
    /// Runs a command in a container beneath another. It lives as long as its output is listened to.
    pub async fn launch_session(&self, launch: LaunchNestedContainerSession) -> Result<Output, Fault> {
        let call = Call {
            r#type: Some(Type::LAUNCH_NESTED_CONTAINER_SESSION),
            launch_nested_container_session: launch.into(),
            ..Default::default()
        };
        self.listen(&call).await
    }

    /// What a container writes from now on.
    pub async fn attach_output(&self, container: &ContainerID) -> Result<Output, Fault> {
        self.listen(&session::listen(container)).await
    }

    /// Types into a container; only one may at a time.
    pub async fn attach_input(&self, container: &ContainerID) -> Result<Input, Fault> {
        let mut request = Request::post(PATH, self.format, Vec::new());
        request.headers = vec![
            (header::CONTENT_TYPE, RECORDIO.to_owned()),
            (HeaderName::from_static("message-content-type"), self.format.media_type().to_owned()),
            (header::ACCEPT, self.format.media_type().to_owned()),
        ];
        request.patience = None; // It is answered at the end.
        let request = request.with_credential(self.credential.as_ref());
        let peer = discovery::target(&mut self.masters.clone()).await?;
        let (mut pieces, body) = Channel::new(SAID_QUEUE_MAX);
        let answer = async move {
            let mut connection = Connection::new(peer.clone());
            let answer = connection.send_pieces(&request, body).await?;
            connection::body_of(&peer, answer).await.map(drop)
        };
        let answer = tokio::spawn(answer);
        let (sender, said) = mpsc::channel(SAID_QUEUE_MAX);
        let first = record(self.format, &session::addressed(container));
        if pieces.send_data(first).await.is_ok() {
            // Ends with the input, or when the receiver is gone.
            tokio::spawn(pass_on(self.format, said, pieces));
        }
        Ok(Input { sender: Some(sender), answer: Some(answer) })
    }

    async fn listen(&self, call: &Call) -> Result<Output, Fault> {
        let mut request = Request::post(PATH, self.format, self.format.encode(call));
        request.headers = vec![
            (header::CONTENT_TYPE, self.format.media_type().to_owned()),
            (header::ACCEPT, RECORDIO.to_owned()),
            (HeaderName::from_static("message-accept"), self.format.media_type().to_owned()),
        ];
        request.patience = None; // A launch takes as long as it takes.
        let (peer, answer) = self.open(request).await?;
        // 202 is no stream: there is a container of that id already.
        if answer.status() != http::StatusCode::OK {
            return Err(connection::refusal(answer).await);
        }
        let stream = EventStream::new(&peer, self.format, answer.into_body());
        Ok(Output { peer: peer.to_string(), stream, listener: Listener::default() })
    }
}

fn record(format: Format, call: &Call) -> Bytes {
    recordio::encode(&format.encode(call)).into()
}

async fn pass_on(format: Format, mut said: mpsc::Receiver<ContainerInput>, mut pieces: Sender<Bytes>) {
    let mut beats = interval_at(Instant::now() + HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL);
    loop {
        let said = tokio::select! {
            said = said.recv() => match said {
                Some(said) => said,
                None => return,
            },
            _ = beats.tick() => ContainerInput::Heartbeat,
        };
        if pieces.send_data(record(format, &said.call())).await.is_err() {
            return;
        }
    }
}

/// What a container writes. Dropping it closes its connection.
#[derive(Debug)]
pub struct Output {
    peer: String,
    stream: EventStream<ProcessIO>,
    listener: Listener,
}

impl Output {
    /// The next piece; `None` at the end. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<ContainerOutput>, Fault> {
        loop {
            let message = match self.listener.patience() {
                Some(after) => timeout(after, self.stream.next())
                    .await
                    .map_err(|_| Fault::Timeout { peer: self.peer.clone(), after })?,
                None => self.stream.next().await,
            };
            let Some(message) = message? else { return Ok(None) };
            if let Some(heard) = self.listener.receive(message) {
                return Ok(Some(heard));
            }
        }
    }
}

/// The typing end of a container. Dropping it leaves the container's input open for others.
#[derive(Debug)]
pub struct Input {
    sender: Option<mpsc::Sender<ContainerInput>>,
    /// Until it was heard.
    answer: Option<JoinHandle<Result<(), Fault>>>,
}

impl Input {
    /// Sends input; waits while the container does not read. Input after the end is lost, and [`Input::ended`] has
    /// the reason of the end.
    pub async fn send(&self, said: ContainerInput) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(said).await;
        }
    }

    /// Waits until input is no longer read: the container's output has ended, or the agent rejected it. Cancel safe;
    /// reported once.
    pub async fn ended(&mut self) -> Result<(), Fault> {
        let Some(answer) = &mut self.answer else { return Err(Fault::Ended) };
        let answer = answer.await;
        self.answer = None;
        answer.unwrap_or(Err(Fault::Ended))
    }

    /// Closes the input: waits until all of it is read.
    pub async fn leave(mut self) -> Result<(), Fault> {
        self.sender = None;
        self.ended().await
    }
}
