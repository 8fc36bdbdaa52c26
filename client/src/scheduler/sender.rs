//! Sends the calls of a framework in the order in which they were made, several in flight on one connection.
//!
//! Calls go where the subscription is: to another master after a failover, whatever is in flight to the former one. A call
//! that changes later subscriptions is reported back to the driver once it is accepted.

use http::HeaderName;
use tepui_proto::mesos::v1::scheduler::Call;
use tokio::sync::{mpsc, oneshot, watch};

use super::Options;
use super::session::{Link, Session};
use crate::connection::{Head, Request};
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::pipeline::Pipeline;

pub(super) const PATH: &str = "/api/v1/scheduler";
pub(super) const STREAM_ID: HeaderName = HeaderName::from_static("mesos-stream-id");

/// Where calls go, and what they carry.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub master: Endpoint,
    pub link: Link,
}

pub(super) type Reply = oneshot::Sender<Result<(), Fault>>;

pub(super) struct CallSender {
    calls: mpsc::Receiver<(Call, Reply)>,
    routes: watch::Receiver<Option<Route>>,
    accepted: mpsc::Sender<Call>,
    options: Options,
    current: Option<Current>,
    pipeline: Option<Pipeline<InFlight>>,
}

/// The route in use with the head that all calls on it have.
struct Current {
    link: Link,
    head: Head,
}

struct InFlight {
    reply: Reply,
    /// The call, if its acceptance changes later subscriptions.
    remembered: Option<Call>,
}

impl CallSender {
    pub fn new(
        calls: mpsc::Receiver<(Call, Reply)>,
        mut routes: watch::Receiver<Option<Route>>,
        accepted: mpsc::Sender<Call>,
        options: Options,
    ) -> Self {
        routes.mark_changed();
        Self { calls, routes, accepted, options, current: None, pipeline: None }
    }

    /// Runs until no caller is left and every call is answered.
    pub async fn run(mut self) {
        let mut asked = Vec::new();
        loop {
            let room = self.pipeline.as_ref().map_or(1, Pipeline::room);
            tokio::select! {
                // Answers first: they also show that the peer closed an idle connection.
                biased;
                answer = next_answer(&mut self.pipeline) => self.answered(answer).await,
                count = self.calls.recv_many(&mut asked, room), if room > 0 => {
                    if count == 0 {
                        break;
                    }
                    for (call, reply) in asked.drain(..) {
                        self.send(call, reply).await;
                    }
                }
            }
        }
        while self.pipeline.as_ref().is_some_and(|pipeline| !pipeline.is_idle()) {
            let answer = next_answer(&mut self.pipeline).await;
            self.answered(answer).await;
        }
    }

    async fn send(&mut self, call: Call, reply: Reply) {
        let format = self.options.format;
        let failed = match self.follow_route() {
            Ok((current, pipeline)) => {
                let call = current.link.stamp(call);
                let body = format.encode(&call);
                let remembered = Session::is_remembered(&call).then_some(call);
                match pipeline.send(&current.head, &body, InFlight { reply, remembered }).await {
                    Ok(()) => return,
                    Err((call, fault)) => (call.reply, fault),
                }
            }
            Err(fault) => (reply, fault),
        };
        let _ = failed.0.send(Err(failed.1)); // The caller may have stopped waiting.
    }

    /// The route for the next call. If it leads to another master, nothing is expected from the former one.
    fn follow_route(&mut self) -> Result<(&Current, &mut Pipeline<InFlight>), Fault> {
        if self.routes.has_changed().map_err(|_| Fault::Ended)? {
            let route = self.routes.borrow_and_update().clone();
            self.current = None;
            if let Some(Route { master, link }) = route {
                if self.pipeline.as_ref().is_none_or(|pipeline| *pipeline.peer() != master) {
                    self.abandon("another master leads");
                    self.pipeline = Some(Pipeline::new(master.clone()));
                }
                let mut request = Request::post(PATH, self.options.format, Vec::new())
                    .with_credential(self.options.credential.as_ref());
                request.headers.extend(link.stream_id.clone().map(|id| (STREAM_ID, id)));
                self.current = Some(Current { head: request.head(&master)?, link });
            }
        }
        self.current.as_ref().zip(self.pipeline.as_mut()).ok_or(Fault::NotSubscribed)
    }

    async fn answered(&mut self, answer: Result<(InFlight, Result<(), Fault>), Fault>) {
        match answer {
            Ok((InFlight { reply, remembered }, outcome)) => {
                if let (Some(call), Ok(())) = (remembered, &outcome) {
                    // An error means that the session has terminated meanwhile: nothing to apply_accepted then.
                    let _ = self.accepted.send(call).await;
                }
                let _ = reply.send(outcome); // The caller may have stopped waiting.
            }
            Err(fault) => self.abandon(&fault.to_string()),
        }
    }

    /// Gives up all calls in flight: each may have been carried out.
    fn abandon(&mut self, why: &str) {
        let Some(pipeline) = &mut self.pipeline else { return };
        for call in pipeline.abandon() {
            let _ = call.reply.send(Err(pipeline.lost(why))); // The caller may have stopped waiting.
        }
    }
}

async fn next_answer<T>(pipeline: &mut Option<Pipeline<T>>) -> Result<(T, Result<(), Fault>), Fault> {
    match pipeline {
        Some(pipeline) => pipeline.answer().await,
        None => std::future::pending().await,
    }
}
