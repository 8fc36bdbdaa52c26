//! Drives a [`Session`] over HTTP: one task holds the session and the event stream, another per subscription sends calls.
//!
//! A call that fails counts as the loss of the subscription: the next one carries everything that is not confirmed.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tepui_proto::mesos::v1::executor::{Call, Event as WireEvent};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::{debug, info};

use super::event::Event;
use super::session::{Config, Outcome, Session};
use super::{EVENTS_QUEUE_MAX, Environment, Executor, REPORTS_QUEUE_MAX, Report, Reporter};
use crate::connection::{self, Connection, Request};
use crate::fault::Fault;
use crate::format::Format;
use crate::pipeline::Pipeline;
use crate::random;
use crate::stream::EventStream;

const PATH: &str = "/api/v1/executor";

pub(super) fn start(environment: &Environment, format: Format) -> Executor {
    let (events, heard) = mpsc::channel(EVENTS_QUEUE_MAX);
    let (reports, reported) = mpsc::channel(REPORTS_QUEUE_MAX);
    let config = Config {
        framework_id: environment.framework_id.clone(),
        executor_id: environment.executor_id.clone(),
        checkpoint: environment.checkpoint,
        recovery_timeout: environment.recovery_timeout,
        backoff_max: environment.subscription_backoff_max,
    };
    let started = Instant::now();
    let session = Session::new(config, started.elapsed());
    let peer = Peer { environment: environment.clone(), format };
    tokio::spawn(Driver { started, peer, session, events, reported }.run());
    Executor { events: heard, reporter: Reporter { reports } }
}

struct Driver {
    started: Instant,
    peer: Peer,
    session: Session,
    events: mpsc::Sender<Event>,
    reported: mpsc::Receiver<Report>,
}

#[derive(Clone)]
struct Peer {
    environment: Environment,
    format: Format,
}

impl Peer {
    fn request(&self, body: Vec<u8>) -> Request {
        Request::post(PATH, self.format, body).with_credential(self.environment.credential.as_ref())
    }
}

/// The session has terminated, or the executor was dropped.
struct SessionClosed;

impl Driver {
    async fn run(mut self) {
        // The loop ends only after the executor has received the reason, if it still exists.
        while let Ok(()) = self.pause().await {
            let outcome = match self.open().await {
                Ok(Some(stream)) => self.listen(stream).await,
                Ok(None) => Ok(()),
                Err(over) => Err(over),
            };
            if outcome.is_err() || self.lost().await.is_err() {
                return;
            }
        }
    }

    /// Waits until the next attempt is due; meanwhile updates are taken in.
    async fn pause(&mut self) -> Result<(), SessionClosed> {
        loop {
            let retry_at = self.session.deadline().ok_or(SessionClosed)?;
            tokio::select! {
                () = tokio::time::sleep_until((self.started + retry_at).into()) => return Ok(()),
                Some(report) = self.reported.recv() => {
                    self.take(report);
                }
                () = self.events.closed() => return Err(SessionClosed),
            }
        }
    }

    async fn open(&mut self) -> Result<Option<EventStream<WireEvent>>, SessionClosed> {
        let call = self.session.subscribe(self.started.elapsed());
        let agent = &self.peer.environment.agent;
        let request = self.peer.request(self.peer.format.encode(&call));
        let answer = Connection::new(agent.clone()).send(&request).await;
        match answer {
            Ok(answer) if answer.status().is_success() => {
                Ok(Some(EventStream::new(agent, self.peer.format, answer.into_body())))
            }
            Ok(answer) => self.failed(connection::refusal(answer).await).await.map(|()| None),
            Err(fault) => self.failed(fault).await.map(|()| None),
        }
    }

    async fn listen(&mut self, mut stream: EventStream<WireEvent>) -> Result<(), SessionClosed> {
        let (calls, mut failed) = send_calls(self.peer.clone());
        loop {
            let deadline = self.session.deadline().ok_or(SessionClosed)?;
            tokio::select! {
                event = stream.next() => match event {
                    Ok(Some(event)) => self.receive(event, &calls).await?,
                    Ok(None) => return Ok(()),
                    Err(fault) => {
                        info!(%fault, "event stream closed");
                        return Ok(());
                    }
                },
                Some(report) = self.reported.recv() => {
                    if let Some(call) = self.take(report) {
                        calls.send(call).await;
                    }
                }
                Some(fault) = failed.recv() => return self.failed(fault).await,
                () = tokio::time::sleep_until((self.started + deadline).into()) => {
                    match self.session.due(self.started.elapsed()) {
                        Outcome::Send(call) => calls.send(call).await,
                        Outcome::Lost => return Ok(()),
                        Outcome::Continue | Outcome::Subscribe | Outcome::Ended(_) => (),
                    }
                }
                () = self.events.closed() => return Err(SessionClosed),
            }
        }
    }

    async fn receive(&mut self, event: WireEvent, calls: &Calls) -> Result<(), SessionClosed> {
        let event = self.session.receive(self.started.elapsed(), event);
        if let Some(Event::Subscribed(_)) = event {
            for call in self.session.held_back() {
                calls.send(call).await;
            }
        }
        self.deliver(event, Some(calls)).await
    }

    /// The call to send for a report, if it can be sent now.
    fn take(&mut self, report: Report) -> Option<Call> {
        match report {
            Report::Update(status) => self.session.update(status, random::uuid(), timestamp()),
            Report::Message(data) => self.session.message(data),
        }
    }

    /// A call failed: refused for good ends the session, everything else only the subscription.
    async fn failed(&mut self, fault: Fault) -> Result<(), SessionClosed> {
        debug!(agent = %self.peer.environment.agent, %fault, "a call failed");
        let Fault::Refused { status, message } = fault else { return Ok(()) };
        match self.session.refused(status, &message) {
            Outcome::Ended(event) => {
                self.deliver(Some(event), None).await?;
                Err(SessionClosed)
            }
            Outcome::Continue | Outcome::Lost | Outcome::Send(_) | Outcome::Subscribe => Ok(()),
        }
    }

    async fn lost(&mut self) -> Result<(), SessionClosed> {
        let event = self.session.lost(self.started.elapsed(), random::number());
        self.deliver(event, None).await
    }

    /// Waits for room if the executor is behind. It may be behind because it waits to report, so reports go on.
    async fn deliver(&mut self, event: Option<Event>, calls: Option<&Calls>) -> Result<(), SessionClosed> {
        let Some(event) = event else { return Ok(()) };
        let events = self.events.clone();
        loop {
            tokio::select! {
                room = events.reserve() => {
                    room.map_err(|_| SessionClosed)?.send(event);
                    return Ok(());
                }
                Some(report) = self.reported.recv() => {
                    if let (Some(call), Some(calls)) = (self.take(report), calls) {
                        calls.send(call).await;
                    }
                }
            }
        }
    }
}

fn timestamp() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The calls of one subscription; dropping it gives up what is not sent yet.
struct Calls {
    queue: mpsc::Sender<Call>,
    task: AbortHandle,
}

impl Calls {
    /// Queues a call. After a failure it is dropped, and the failure is already reported.
    async fn send(&self, call: Call) {
        let _ = self.queue.send(call).await;
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends calls in order, several in flight, until one fails; the failure comes out of the receiver.
fn send_calls(peer: Peer) -> (Calls, mpsc::Receiver<Fault>) {
    let (queue, calls) = mpsc::channel(REPORTS_QUEUE_MAX);
    let (failures, failed) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        if let Err(fault) = send_until_failure(peer, calls).await {
            let _ = failures.send(fault).await; // The subscription may be gone already.
        }
    });
    (Calls { queue, task: task.abort_handle() }, failed)
}

async fn send_until_failure(peer: Peer, mut calls: mpsc::Receiver<Call>) -> Result<(), Fault> {
    let head = peer.request(Vec::new()).head(&peer.environment.agent)?;
    let (mut pipeline, mut ready) = (Pipeline::new(peer.environment.agent.clone()), Vec::new());
    loop {
        let room = pipeline.room();
        tokio::select! {
            // Answers first: they also show that the peer closed an idle connection.
            biased;
            answer = pipeline.answer() => answer?.1?,
            count = calls.recv_many(&mut ready, room), if room > 0 => {
                if count == 0 {
                    return Ok(());
                }
                for call in ready.drain(..) {
                    let body = peer.format.encode(&call);
                    pipeline.send(&head, &body, ()).await.map_err(|((), fault)| fault)?;
                }
            }
        }
    }
}
