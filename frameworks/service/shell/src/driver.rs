//! Between the machine and the master: events become inputs, effects become calls.
//!
//! Calls go out one after the other in the order of the effects. A call that did not get through is not repeated: the
//! scheduler is notified, and reconciles every task and operation that is not terminal, as after a subscription.

use std::sync::Arc;

use tepui_client::Fault;
use tepui_client::scheduler::{Caller, Event, Scheduler, calls};
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::mesos::v1::scheduler::call::Type;
use tepui_service::scheduler::{Accept, Effect, Input, View};
use tepui_types::{AgentId, OfferId};
use tokio::sync::{mpsc, watch};
use tracing::{debug, error, info, warn};

use crate::agents::Agents;
use crate::convert::{self, Announced};
use crate::handle::Waiting;
use crate::rivals::Rivals;

/// Calls to the master that wait to be sent. What comes on top is lost, as by a broken link.
pub(crate) const CALLS_QUEUE_MAX: usize = 65_536;

/// Why a scheduler does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The framework of this id is uninstalled.
    Finished(String),
    Failed(String),
}

/// A call to the master.
#[derive(Debug)]
pub(crate) enum MasterCall {
    Accept(Box<Accept>),
    Other(Box<Call>),
    /// After the calls before it: the framework of this id is uninstalled.
    Finish(String),
}

/// Makes effects visible. Called by the runtime; never waits.
#[derive(Debug)]
pub(crate) struct Sink {
    pub views: watch::Sender<Arc<View>>,
    pub waiting: Waiting,
    pub calls: mpsc::Sender<MasterCall>,
    pub halt: watch::Sender<Option<Halt>>,
    pub announced: Announced,
}

impl Sink {
    /// The view goes first: a client that got its answer must find its effect in documents.
    pub fn release(&self, effects: Vec<Effect>) {
        let (views, others): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Publish(_)));
        for effect in views.into_iter().chain(others) {
            match effect {
                Effect::Publish(view) => drop(self.views.send_replace(view)),
                Effect::Reply { request, answer } => self.waiting.reply(request, answer),
                Effect::Accept(accept) => self.call(MasterCall::Accept(accept)),
                Effect::Decline { offers, refuse } => self.other(convert::decline(&offers, refuse)),
                Effect::Kill { task, agent } => {
                    self.other(calls::kill(task.to_proto(), agent.map(|agent| agent.to_proto()), None));
                }
                Effect::Acknowledge { agent, task, uuid } => {
                    self.other(convert::acknowledge(&agent, &task, uuid));
                }
                Effect::AcknowledgeOperation { agent, operation, uuid } => {
                    self.other(convert::acknowledge_operation(agent, operation, uuid));
                }
                Effect::Reconcile(tasks) => {
                    let agent = |agent: &Option<AgentId>| agent.as_ref().map(AgentId::to_proto);
                    let tasks = tasks.iter().map(|(task, at)| (task.to_proto(), agent(at)));
                    self.other(calls::reconcile(tasks));
                }
                Effect::ReconcileOperations(operations) => {
                    self.other(convert::reconcile_operations(&operations));
                }
                Effect::UpdateFramework(info) => {
                    self.other(calls::update_framework(self.announced.complete(*info), Vec::new(), None));
                }
                Effect::Suppress => self.other(calls::suppress(Vec::new())),
                Effect::Revive => self.other(calls::revive(Vec::new())),
                Effect::Teardown => self.other(calls::teardown()),
                Effect::Finished(framework) => self.call(MasterCall::Finish(framework)),
                Effect::Stop(why) => drop(self.halt.send_replace(Some(Halt::Failed(why)))),
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
}

/// Sends calls until the machine is gone.
pub(crate) async fn send_calls(
    mut queue: mpsc::Receiver<MasterCall>,
    caller: Caller,
    inputs: tepui_runtime::Handle<Input>,
    halt: watch::Sender<Option<Halt>>,
) {
    while let Some(call) = queue.recv().await {
        match call {
            MasterCall::Other(call) => {
                let kind = call.r#type;
                let offers = call.decline.offer_ids.iter().map(OfferId::from).collect();
                debug!(call = ?kind, "call");
                match caller.call(*call).await {
                    // A machine that has ended needs no input.
                    Ok(()) if kind == Some(Type::TEARDOWN) => drop(inputs.send(Input::Deregistered).await),
                    Ok(()) => (),
                    Err(error) => {
                        warn!(call = ?kind, %error, "call failed");
                        on_lost_call(&inputs, offers, &error).await;
                    }
                }
            }
            MasterCall::Accept(accept) => {
                let agent_id = &accept.agent;
                info!(%agent_id, operations = accept.operations.len(), "offers accepted");
                if let Err(error) = caller.call(convert::accept(&accept)).await {
                    warn!(%agent_id, %error, "accept failed");
                    on_lost_accept(&inputs, &accept, &error).await;
                    on_lost_call(&inputs, accept.offers, &error).await;
                }
            }
            MasterCall::Finish(framework) => drop(halt.send_replace(Some(Halt::Finished(framework)))),
        }
    }
}

/// The scheduler makes up for calls that may not have arrived; a new subscription makes up for those before it.
async fn on_lost_call(inputs: &tepui_runtime::Handle<Input>, offers: Vec<OfferId>, fault: &Fault) {
    if fault.is_passing() && !matches!(fault, Fault::NotSubscribed) {
        // A machine that has ended needs no input.
        let _ = inputs.send(Input::CallsLost { offers }).await;
    }
}

/// If the master certainly did not launch the tasks, the scheduler learns it at once; otherwise the reconciliation that
/// makes up for the call decides.
async fn on_lost_accept(inputs: &tepui_runtime::Handle<Input>, accept: &Accept, fault: &Fault) {
    let state = match fault {
        Fault::NotSubscribed | Fault::Connect { .. } | Fault::Refused { status: 500.., .. } => {
            TaskState::TASK_DROPPED
        }
        Fault::Refused { .. } => TaskState::TASK_ERROR,
        _ => return,
    };
    for task in convert::launched(accept) {
        let status = convert::not_launched(task, &accept.agent, state, fault.to_string());
        if inputs.send(Input::Update(Box::new(status))).await.is_err() {
            return; // A machine that has ended needs no update.
        }
    }
}

/// What is decided at the first subscription, before the machine learns of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub rivals: Rivals,
    /// The service has no framework in its records.
    pub is_new: bool,
    pub halt: watch::Sender<Option<Halt>>,
}

impl Entry {
    /// Of two schedulers that started at the same time the later one ends. Its framework is removed only if it is new: it
    /// owns nothing then.
    async fn admits(self, caller: &Caller, framework_id: &str) -> bool {
        let Some(rival) = self.rivals.find_earlier(framework_id).await else { return true };
        if self.is_new
            && let Err(error) = caller.call(calls::teardown()).await
        {
            warn!(%error, framework_id, "cannot remove the framework of this scheduler");
        }
        self.halt.send_replace(Some(Halt::Failed(rival)));
        false
    }
}

/// Feeds events to the machine until the session ends.
pub(crate) async fn receive_events(
    mut scheduler: Scheduler,
    inputs: tepui_runtime::Handle<Input>,
    agents: Agents,
    entry: Entry,
) {
    let mut entry = Some(entry);
    while let Some(event) = scheduler.next_event().await {
        let input = match event {
            Event::Subscribed(subscribed) => {
                let framework_id = subscribed.framework_id.value.clone();
                info!(framework_id, "subscribed");
                if let Some(entry) = entry.take()
                    && !entry.admits(&scheduler.caller(), &framework_id).await
                {
                    return;
                }
                Input::Subscribed { framework_id }
            }
            Event::Disconnected => {
                warn!("master disconnected");
                Input::Disconnected
            }
            Event::Offers(offers) => {
                agents.prepare(&offers).await;
                Input::Offers(offers)
            }
            Event::Rescind(offer) => Input::Rescinded(OfferId::new(offer.value)),
            Event::Update(status) => {
                let (state, reason) = (status.state, status.reason);
                let status_message = status.message.as_deref().unwrap_or_default();
                info!(task_id = status.task_id.value, ?state, ?reason, status_message, "task update");
                Input::Update(Box::new(status))
            }
            Event::UpdateOperation(status) => Input::OperationUpdate(Box::new(status)),
            Event::Failure(failure) => match (failure.agent_id.into_option(), failure.executor_id.is_set()) {
                (Some(agent), false) => Input::AgentFailed(AgentId::new(agent.value)),
                (Some(_) | None, _) => continue, // Of executors the updates of their tasks say enough.
            },
            Event::Error(message) => Input::Failed(message),
            Event::InverseOffers(_) | Event::RescindInverseOffer(_) | Event::Message(_) => continue,
        };
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}
