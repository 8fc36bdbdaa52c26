//! Drives a [`Session`] over HTTP: one task holds the event stream, another sends the calls, each on its own connection.
//!
//! The first owns the session and publishes the route for calls; the second reports accepted calls back.
//! If the first ends, so do all calls ([`Fault::Ended`]); the second ends with the last [`Caller`].

use std::time::Instant;

use tepui_proto::mesos::v1::FrameworkInfo;
use tepui_proto::mesos::v1::scheduler::{Call, Event as WireEvent};
use tokio::sync::{mpsc, watch};
use tracing::{debug, info};

use super::event::Event;
use super::sender::{CallSender, PATH, Route, STREAM_ID};
use super::session::{Outcome, Session};
use super::{CALLS_QUEUE_MAX, Caller, EVENTS_QUEUE_MAX, Options, Scheduler};
use crate::connection::{self, Connection, Request};
use crate::discovery;
use crate::endpoint::Masters;
use crate::fault::Fault;
use crate::random;
use crate::stream::EventStream;

pub(super) fn start(masters: Masters, framework: FrameworkInfo, options: Options) -> Scheduler {
    let (events, heard) = mpsc::channel(EVENTS_QUEUE_MAX);
    let (calls, asked) = mpsc::channel(CALLS_QUEUE_MAX);
    let (accepted, accepted_calls) = mpsc::channel(CALLS_QUEUE_MAX);
    let (route, link) = watch::channel(None);
    let session = Session::new(framework)
        .with_suppressed_roles(options.suppressed_roles.clone())
        .with_backoff_max(options.backoff_max);
    let driver = Driver {
        started: Instant::now(),
        masters,
        session,
        options: options.clone(),
        events,
        route,
        accepted: accepted_calls,
    };
    tokio::spawn(driver.run());
    tokio::spawn(CallSender::new(asked, link.clone(), accepted, options).run());
    Scheduler { events: heard, caller: Caller { calls, link } }
}

struct Driver {
    started: Instant,
    masters: Masters,
    session: Session,
    options: Options,
    events: mpsc::Sender<Event>,
    route: watch::Sender<Option<Route>>,
    accepted: mpsc::Receiver<Call>,
}

/// The framework dropped its scheduler.
struct Abandoned;

impl Driver {
    async fn run(mut self) {
        while let Ok(true) = self.pause().await {
            let outcome = match self.open().await {
                Ok(Some(stream)) => self.listen(stream).await,
                Ok(None) => Ok(()),
                Err(abandoned) => Err(abandoned),
            };
            self.route.send_replace(None);
            if outcome.is_err() {
                return;
            }
            let disconnected = self.session.lost(self.started.elapsed(), random::number());
            if self.deliver(disconnected).await.is_err() {
                return;
            }
        }
    }

    /// Waits until the next attempt is due. False if the session has terminated.
    async fn pause(&mut self) -> Result<bool, Abandoned> {
        while let Some(retry_at) = self.session.deadline() {
            tokio::select! {
                () = tokio::time::sleep_until((self.started + retry_at).into()) => return Ok(true),
                Some(call) = self.accepted.recv() => self.session.apply_accepted(&call),
                () = self.events.closed() => return Err(Abandoned),
            }
        }
        Ok(false)
    }

    /// Subscribes at the leader. None if there was none to be had.
    async fn open(&mut self) -> Result<Option<EventStream<WireEvent>>, Abandoned> {
        let call = self.session.subscribe(self.started.elapsed());
        let format = self.options.format;
        let request = Request::post(PATH, format, format.encode(&call))
            .with_credential(self.options.credential.as_ref());
        loop {
            let found = tokio::select! {
                found = discovery::target(&mut self.masters) => found,
                () = self.events.closed() => return Err(Abandoned),
            };
            let master = match found {
                Ok(master) => master,
                Err(fault) => {
                    debug!(%fault, "cannot find the leading master");
                    self.masters.failed();
                    return Ok(None);
                }
            };
            let mut connection = Connection::new(master.clone());
            let answer = tokio::select! {
                answer = connection.send(&request) => answer,
                () = self.events.closed() => return Err(Abandoned),
            };
            match answer {
                Ok(answer) if answer.status().is_success() => {
                    self.masters.succeeded();
                    let stream_id = answer.headers().get(STREAM_ID).and_then(|id| id.to_str().ok());
                    self.session.opened(stream_id.map(str::to_owned));
                    return Ok(Some(EventStream::new(&master, format, answer.into_body())));
                }
                Ok(answer) => {
                    if let Some(location) = connection::location(&answer)
                        && self.masters.redirected(&location, PATH)
                    {
                        debug!(%master, location, "redirected");
                        continue;
                    }
                    self.refused(connection::refusal(answer).await).await?;
                    return Ok(None);
                }
                Err(fault) => {
                    debug!(%master, %fault, "cannot subscribe");
                    self.masters.failed();
                    return Ok(None);
                }
            }
        }
    }

    async fn refused(&mut self, fault: Fault) -> Result<(), Abandoned> {
        debug!(master = %self.masters.target(), %fault, "subscription rejected");
        self.masters.failed();
        let Fault::Refused { status, message } = fault else { return Ok(()) };
        match self.session.refused(status, &message) {
            Outcome::Retry => Ok(()),
            Outcome::Ended(event) => self.deliver(Some(event)).await,
        }
    }

    /// Passes events on until the stream ends, the master is silent, or the scheduler is dropped.
    async fn listen(&mut self, mut stream: EventStream<WireEvent>) -> Result<(), Abandoned> {
        while let Some(silent_at) = self.session.deadline() {
            tokio::select! {
                event = stream.next() => match event {
                    Ok(Some(event)) => self.receive(event).await?,
                    Ok(None) => break,
                    Err(fault) => {
                        info!(%fault, "event stream closed");
                        break;
                    }
                },
                () = tokio::time::sleep_until((self.started + silent_at).into()) => {
                    if self.session.is_silent(self.started.elapsed()) {
                        info!(master = %self.masters.target(), "the master is silent");
                        break;
                    }
                }
                Some(call) = self.accepted.recv() => self.session.apply_accepted(&call),
                () = self.events.closed() => return Err(Abandoned),
            }
        }
        Ok(())
    }

    async fn receive(&mut self, event: WireEvent) -> Result<(), Abandoned> {
        let event = self.session.receive(self.started.elapsed(), event);
        if let Some(Event::Subscribed(_)) = event {
            let master = self.masters.target().clone();
            self.route.send_replace(self.session.link().cloned().map(|link| Route { master, link }));
        }
        self.deliver(event).await
    }

    /// Waits for room if the framework is behind. It may be behind because it waits for its calls, so these go on.
    async fn deliver(&mut self, event: Option<Event>) -> Result<(), Abandoned> {
        let Some(event) = event else { return Ok(()) };
        loop {
            tokio::select! {
                room = self.events.reserve() => {
                    room.map_err(|_| Abandoned)?.send(event);
                    return Ok(());
                }
                Some(call) = self.accepted.recv() => self.session.apply_accepted(&call),
            }
        }
    }
}
