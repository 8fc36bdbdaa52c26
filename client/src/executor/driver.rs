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
use crate::connection::{self, Ask, Connection};
use crate::fault::Fault;
use crate::format::Format;
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
    fn ask(&self, call: &Call) -> Ask {
        Ask::post(PATH, self.format, self.format.encode(call))
            .with_credential(self.environment.credential.as_ref())
    }
}

/// The session is over, or nobody listens any more.
struct Over;

impl Driver {
    async fn run(mut self) {
        // Over is the only way out; whoever listens has heard why.
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
    async fn pause(&mut self) -> Result<(), Over> {
        loop {
            let retry_at = self.session.deadline().ok_or(Over)?;
            tokio::select! {
                () = tokio::time::sleep_until((self.started + retry_at).into()) => return Ok(()),
                Some(report) = self.reported.recv() => {
                    self.take(report);
                }
                () = self.events.closed() => return Err(Over),
            }
        }
    }

    async fn open(&mut self) -> Result<Option<EventStream<WireEvent>>, Over> {
        let call = self.session.subscribe(self.started.elapsed());
        let agent = &self.peer.environment.agent;
        let answer = Connection::new(agent.clone()).send(&self.peer.ask(&call)).await;
        match answer {
            Ok(answer) if answer.status().is_success() => {
                Ok(Some(EventStream::new(agent, self.peer.format, answer.into_body())))
            }
            Ok(answer) => self.failed(connection::refusal(answer).await).await.map(|()| None),
            Err(fault) => self.failed(fault).await.map(|()| None),
        }
    }

    async fn listen(&mut self, mut stream: EventStream<WireEvent>) -> Result<(), Over> {
        let (calls, mut failed) = send_calls(self.peer.clone());
        loop {
            let deadline = self.session.deadline().ok_or(Over)?;
            tokio::select! {
                event = stream.next() => match event {
                    Ok(Some(event)) => self.hear(event, &calls).await?,
                    Ok(None) => return Ok(()),
                    Err(fault) => {
                        info!(%fault, "the event stream broke");
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
                () = self.events.closed() => return Err(Over),
            }
        }
    }

    async fn hear(&mut self, event: WireEvent, calls: &Calls) -> Result<(), Over> {
        let event = self.session.hear(self.started.elapsed(), event);
        if let Some(Event::Subscribed(_)) = event {
            for call in self.session.held_back() {
                calls.send(call).await;
            }
        }
        self.tell(event, Some(calls)).await
    }

    /// The call to send for a report, if it can be sent now.
    fn take(&mut self, report: Report) -> Option<Call> {
        match report {
            Report::Update(status) => self.session.update(status, random::uuid(), timestamp()),
            Report::Message(data) => self.session.message(data),
        }
    }

    /// A call failed: refused for good ends the session, everything else only the subscription.
    async fn failed(&mut self, fault: Fault) -> Result<(), Over> {
        debug!(agent = %self.peer.environment.agent, %fault, "a call failed");
        let Fault::Refused { status, message } = fault else { return Ok(()) };
        match self.session.refused(status, &message) {
            Outcome::Ended(event) => {
                self.tell(Some(event), None).await?;
                Err(Over)
            }
            Outcome::Continue | Outcome::Lost | Outcome::Send(_) | Outcome::Subscribe => Ok(()),
        }
    }

    async fn lost(&mut self) -> Result<(), Over> {
        let event = self.session.lost(self.started.elapsed(), random::number());
        self.tell(event, None).await
    }

    /// Waits for room if the executor is behind. It may be behind because it waits to report, so reports go on.
    async fn tell(&mut self, event: Option<Event>, calls: Option<&Calls>) -> Result<(), Over> {
        let Some(event) = event else { return Ok(()) };
        let events = self.events.clone();
        loop {
            tokio::select! {
                room = events.reserve() => {
                    room.map_err(|_| Over)?.send(event);
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
    /// Queues a call. After a failure there is nobody to take it, and the failure is already reported.
    async fn send(&self, call: Call) {
        let _ = self.queue.send(call).await;
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends calls in order until one fails; the failure comes out of the receiver.
fn send_calls(peer: Peer) -> (Calls, mpsc::Receiver<Fault>) {
    let (queue, mut calls) = mpsc::channel::<Call>(REPORTS_QUEUE_MAX);
    let (failures, failed) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        let mut connection = Connection::new(peer.environment.agent.clone());
        while let Some(call) = calls.recv().await {
            let outcome = match connection.send(&peer.ask(&call)).await {
                Ok(answer) => connection::body_of(connection.peer(), answer).await,
                Err(fault) => Err(fault),
            };
            if let Err(fault) = outcome {
                let _ = failures.send(fault).await; // The subscription may be gone already.
                return;
            }
        }
    });
    (Calls { queue, task: task.abort_handle() }, failed)
}
