//! Between the machine and the master: events become inputs, effects become calls.
//!
//! Calls go out one after the other in the order of the effects. A call that did not get through is not repeated: the manager
//! asks the master about its containers from time to time. Offers of such a call are declined until the master answers, or
//! until the subscription ends and voids them: the manager holds them no longer.

use std::sync::Arc;
use std::time::Duration;

use tepui_client::Fault;
use tepui_client::scheduler::{Caller, Event, Scheduler, calls};
use tepui_client::v1::{OfferID, TaskState, task_status};
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_swarm::{Effect, EngineOperation, Input, Launch, Update, View};
use tepui_types::{AgentId, OfferId, TaskId};
use tokio::sync::{mpsc, watch};
use tracing::{debug, error, info, warn};

use crate::convert::{self, Place};
use crate::engine::{EngineClient, EngineFault, Engines};
use crate::handle::Waiting;

/// Calls to the master that wait to be sent. What comes on top is lost, as by a broken link.
pub const CALLS_QUEUE_MAX: usize = 65_536;

/// Between two attempts to decline offers of a call that did not get through.
const DECLINE_RETRY: Duration = Duration::from_secs(1);

/// Makes effects visible. Called by the runtime; never waits.
pub(crate) struct Sink {
    pub views: watch::Sender<Arc<View>>,
    pub waiting: Waiting,
    pub engines: Engines,
    pub calls: mpsc::Sender<MasterCall>,
    pub runtime: tokio::runtime::Handle,
}

/// A call to the master.
#[derive(Debug)]
pub(crate) enum MasterCall {
    Accept(Box<Launch>),
    Other(Box<Call>),
}

impl Sink {
    pub fn release(&self, effects: Vec<Effect>) {
        let _entered = self.runtime.enter();
        for effect in effects {
            debug!(%effect, "effect");
            match effect {
                Effect::Publish(view) => drop(self.views.send_replace(view)),
                Effect::Reply { request, answer } => self.waiting.reply(request, answer),
                Effect::Connect { agent, address } => self.engines.connect(agent, address),
                Effect::Disconnect(agent) => self.engines.disconnect(&agent),
                Effect::Engine { agent, operation } => self.operate(&agent, operation),
                Effect::Accept(launch) => self.call(MasterCall::Accept(launch)),
                Effect::Decline { offers, refuse } => self.other(convert::decline(&offers, refuse)),
                Effect::Revive => self.other(calls::revive(Vec::new())),
                Effect::Acknowledge { agent, task, uuid } => self.other(acknowledge(&agent, &task, uuid)),
                Effect::Kill { task, agent } => {
                    self.other(calls::kill(task.to_proto(), Some(agent.to_proto()), None));
                }
                Effect::Reconcile(tasks) => {
                    let tasks = tasks.iter().map(|(task, agent)| (task.to_proto(), Some(agent.to_proto())));
                    self.other(calls::reconcile(tasks));
                }
            }
        }
    }

    fn other(&self, call: Call) {
        self.call(MasterCall::Other(Box::new(call)));
    }

    fn call(&self, call: MasterCall) {
        if let Err(err) = self.calls.try_send(call) {
            error!(error = %err, "call to the master lost");
        }
    }

    fn operate(&self, agent: &AgentId, operation: EngineOperation) {
        let Some(client) = self.engines.client(agent) else { return };
        tokio::spawn(operate(client, operation)); // Its failure is logged.
    }
}

fn acknowledge(agent: &AgentId, task: &TaskId, uuid: Vec<u8>) -> Call {
    use tepui_proto::mesos::v1::scheduler::call;
    let acknowledge = call::Acknowledge {
        agent_id: agent.to_proto().into(),
        task_id: task.to_proto().into(),
        uuid,
        ..Default::default()
    };
    Call { r#type: Some(call::Type::ACKNOWLEDGE), acknowledge: acknowledge.into(), ..Default::default() }
}

async fn operate(client: EngineClient, operation: EngineOperation) {
    let (method, path, id) = match &operation {
        EngineOperation::Kill(id) => (http::Method::POST, format!("/containers/{id}/kill"), id),
        EngineOperation::Remove(id) => (http::Method::DELETE, format!("/containers/{id}?force=1&v=1"), id),
    };
    match client.succeed(method, &path).await {
        Ok(_) => info!(container = id, ?operation, "engine operation done"),
        // It has exited or is removed already: lists of an engine may be older than that.
        Err(EngineFault::Rejected { status: 404 | 409, message, .. }) => {
            debug!(container = id, ?operation, message, "engine operation had nothing to do");
        }
        Err(error) => warn!(container = id, ?operation, %error, "engine operation failed"),
    }
}

/// Sends calls until the machine is gone.
pub(crate) async fn send_calls(
    mut queue: mpsc::Receiver<MasterCall>,
    caller: Caller,
    inputs: tepui_runtime::Handle<Input>,
    binary: String,
    user: String,
) {
    let mut undeclined: Vec<OfferID> = Vec::new();
    loop {
        let retry = async {
            match undeclined.is_empty() {
                true => std::future::pending().await,
                false => tokio::time::sleep(DECLINE_RETRY).await,
            }
        };
        let call = tokio::select! {
            call = queue.recv() => match call {
                Some(call) => call,
                None => return,
            },
            () = retry => {
                let offers = std::mem::take(&mut undeclined);
                MasterCall::Other(Box::new(calls::decline(offers, None)))
            }
        };
        match call {
            MasterCall::Other(call) => {
                let (kind, offers) = (call.r#type, call.decline.offer_ids.clone());
                if let Err(error) = caller.call(*call).await {
                    warn!(call = ?kind, error = %error, "call failed");
                    note_undeclined(&mut undeclined, offers, &error);
                }
            }
            MasterCall::Accept(launch) => {
                let sent = caller.call(convert::accept(&launch, &binary, &user)).await;
                if let Err(error) = sent {
                    warn!(task_id = %launch.task, error = %error, "launch failed");
                    note_undeclined(&mut undeclined, launch.offers.iter().map(OfferId::to_proto), &error);
                    on_lost_accept(&inputs, &launch, &error).await;
                }
            }
        }
    }
}

/// Without a subscription there are no offers.
fn note_undeclined(undeclined: &mut Vec<OfferID>, offers: impl IntoIterator<Item = OfferID>, fault: &Fault) {
    match fault {
        Fault::NotSubscribed => undeclined.clear(),
        _ => undeclined.extend(offers),
    }
}

/// The master did not get the call, or rejected it: the offers are gone, the container goes back to the queue. If it
/// is unknown whether it got the call, the reconciliation after the next subscription decides.
async fn on_lost_accept(inputs: &tepui_runtime::Handle<Input>, launch: &Launch, fault: &Fault) {
    let (state, reason) = match fault {
        Fault::NotSubscribed | Fault::Connect { .. } | Fault::Refused { status: 500.., .. } => {
            (TaskState::TASK_DROPPED, Some(task_status::Reason::REASON_INVALID_OFFERS))
        }
        Fault::Refused { .. } => (TaskState::TASK_ERROR, Some(task_status::Reason::REASON_TASK_INVALID)),
        _ => return,
    };
    let update = Update {
        task: launch.task.clone(),
        agent: Some(launch.agent.clone()),
        state,
        reason,
        message: fault.to_string(),
        uuid: None,
        container: None,
        missing_image: None,
        by_executor: false,
        has_executor: false,
    };
    let _ = inputs.send(Input::Update(update)).await; // A machine that has ended has nothing to be told.
}

/// Takes events in until the session ends; says why it did.
pub(crate) async fn take_events(
    mut scheduler: Scheduler,
    inputs: tepui_runtime::Handle<Input>,
    place: Place,
) -> String {
    let mut error = "the session with the master has ended".to_owned();
    while let Some(event) = scheduler.next_event().await {
        let input = match event {
            Event::Subscribed(subscribed) => {
                let framework_id = subscribed.framework_id.value.clone();
                info!(framework_id, "subscribed");
                Input::Subscribed { framework_id }
            }
            Event::Disconnected => {
                warn!("master disconnected");
                Input::Disconnected
            }
            Event::Offers(offers) => Input::Offers(usable(&scheduler, &place, offers).await),
            Event::Rescind(offer) => Input::Rescinded(OfferId::new(offer.value)),
            Event::Update(status) => {
                let update = convert::update(&status);
                let (state, reason) = (update.state, update.reason);
                info!(task_id = %update.task, ?state, ?reason, text = update.message, "task update");
                Input::Update(update)
            }
            Event::Failure(failure) => match (failure.agent_id.into_option(), failure.executor_id.is_set()) {
                (Some(agent), false) => Input::AgentFailed(AgentId::new(agent.value)),
                (Some(_) | None, _) => continue, // Of executors the updates of their tasks say enough.
            },
            Event::Error(message) => {
                error = message;
                continue;
            }
            Event::InverseOffers(_)
            | Event::RescindInverseOffer(_)
            | Event::UpdateOperation(_)
            | Event::Message(_) => continue,
        };
        if inputs.send(input).await.is_err() {
            break;
        }
    }
    error
}

/// Offers of agents whose engine cannot be named are declined.
async fn usable(
    scheduler: &Scheduler,
    place: &Place,
    offers: Vec<tepui_client::v1::Offer>,
) -> Vec<tepui_swarm::Offer> {
    let mut taken = Vec::new();
    let mut declined = Vec::new();
    for offer in offers {
        match place.offer(&offer) {
            Ok(offer) => taken.push(offer),
            Err(error) => {
                warn!(agent_id = offer.agent_id.value, hostname = offer.hostname, error, "offer declined");
                declined.extend(offer.id.into_option());
            }
        }
    }
    if !declined.is_empty()
        && let Err(error) = scheduler.decline(declined, None).await
    {
        debug!(%error, "decline failed");
    }
    taken
}
