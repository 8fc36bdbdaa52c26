//! Offers: held until they are used, rescinded, or too old. The connection to an engine outlives them.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::{Now, Outbox};
use tepui_placement::HeldOffer;
use tepui_resources::Resources;
use tepui_types::{AgentId, OfferId, TaskId};

use super::{
    AgentRecord, Effect, LAUNCH_RECONCILE_INTERVAL, Manager, Offer, Phase, RECONCILE_INTERVAL, Record, Timer,
};
use crate::agent::{Agent, EngineLink};
use crate::rejection::Rejection;

impl Manager {
    /// Earlier offers are void; the master says what became of the tasks.
    pub(super) fn on_subscribed(&mut self, now: Now, framework_id: String, out: &mut Outbox<Self>) {
        self.on_disconnected();
        self.connected = true;
        let is_known = self.framework_id.is_some();
        if self.framework_id.as_ref() != Some(&framework_id) {
            self.framework_id = Some(framework_id.clone());
            out.record(Record::Framework(framework_id));
        }
        if is_known {
            self.reconcile_all(out);
        }
        self.timers.set(Timer::ReconcileLaunches, now.mono + LAUNCH_RECONCILE_INTERVAL);
        self.timers.set(Timer::ReconcileAll, now.mono + RECONCILE_INTERVAL);
        self.try_all();
    }

    /// A call, its answer or an update of the master may be lost without a sign of it.
    pub(super) fn on_reconcile_all(&mut self, now: Now, out: &mut Outbox<Self>) {
        self.timers.set(Timer::ReconcileAll, now.mono + RECONCILE_INTERVAL);
        if self.connected {
            self.reconcile_all(out);
        }
    }

    fn reconcile_all(&self, out: &mut Outbox<Self>) {
        let open = self.containers.iter().filter(|(_, it)| !matches!(it.phase, Phase::Ended { .. }));
        let open: Vec<_> = open.map(|(task, it)| (task.clone(), AgentId::new(&*it.agent))).collect();
        if !open.is_empty() {
            out.effect(Effect::Reconcile(open));
        }
        // Every live task: one that is on no record must not go on.
        out.effect(Effect::Reconcile(Vec::new()));
    }

    pub(super) fn on_disconnected(&mut self) {
        self.connected = false;
        self.changed = true;
        for (offer, agent) in core::mem::take(&mut self.holders) {
            self.take_offer(&agent, &offer);
        }
    }

    pub(super) fn on_offers(&mut self, now: Now, offers: Vec<Offer>, out: &mut Outbox<Self>) {
        for offer in offers {
            self.on_offer(now, offer, out);
        }
        self.try_all();
    }

    fn on_offer(&mut self, now: Now, offer: Offer, out: &mut Outbox<Self>) {
        let Offer { id, agent: agent_id, hostname, engine, socket, resources } = offer;
        let known =
            self.agents.get(&agent_id).is_some_and(|agent| agent.address == engine && agent.socket == socket);
        if !known {
            if self.agents.contains_key(&agent_id) {
                out.effect(Effect::Disconnect(agent_id.clone()));
                self.take_offers(&agent_id);
            }
            out.record(Record::Agent(AgentRecord {
                id: agent_id.as_str().into(),
                hostname: hostname.clone(),
                engine: engine.clone(),
                socket: socket.clone(),
            }));
            let agent = Agent::new(hostname, engine.clone(), socket);
            self.agents.insert_mut(agent_id.clone(), Arc::new(agent));
            out.effect(Effect::Connect { agent: agent_id.clone(), address: engine });
        }
        let resources = self.usable(resources);
        let timeout = self.config.offer_timeout;
        let Some(agent) = self.agent_mut(&agent_id) else { return };
        let rescinded = agent.rescinded.take().filter(|deadline| *deadline > now.mono);
        let deadline = rescinded.unwrap_or(now.mono + timeout);
        agent.failed = false;
        if let EngineLink::Down { .. } = agent.engine {
            out.effect(Effect::Decline { offers: Vec::from([id]), refuse: None });
            return;
        }
        agent.declined.clear();
        agent.offers.insert(id.clone(), HeldOffer { id: id.clone(), resources });
        self.holders.insert(id.clone(), agent_id.clone());
        self.timers.set(Timer::Offer(agent_id, id), deadline);
    }

    /// Revocable resources that were not requested are declined.
    fn usable(&self, resources: Resources) -> Resources {
        if self.config.revocable { resources } else { resources.non_revocable() }
    }

    pub(super) fn on_rescinded(&mut self, offer: &OfferId) {
        let Some(agent_id) = self.holders.get(offer).cloned() else { return };
        let deadline = self.timers.get(&Timer::Offer(agent_id.clone(), offer.clone()));
        self.take_offer(&agent_id, offer);
        if let Some(agent) = self.agent_mut(&agent_id) {
            agent.rescinded = deadline;
        }
    }

    pub(super) fn on_offer_timeout(&mut self, agent: &AgentId, offer: &OfferId, out: &mut Outbox<Self>) {
        let Some(declined) = self.take_offer(agent, offer) else { return };
        if let Some(agent) = self.agent_mut(agent) {
            agent.declined.push(declined);
        }
        // While no create waits, other frameworks get their turn: the share of an idle manager is the smallest.
        let refuse = self.pending.is_empty().then_some(self.config.idle_refuse_timeout);
        out.effect(Effect::Decline { offers: Vec::from([offer.clone()]), refuse });
    }

    /// An agent without containers is of no interest any more; the engine of another may still be there.
    pub(super) fn on_agent_failed(&mut self, agent: &AgentId, out: &mut Outbox<Self>) {
        self.take_offers(agent);
        if let Some(agent) = self.agent_mut(agent) {
            agent.failed = true;
        }
        // Updates that the agent had not sent yet are lost with it.
        let open = self
            .occupancies
            .get(agent)
            .into_iter()
            .flat_map(|occupancy| occupancy.own())
            .filter(|(_, it)| it.is_open());
        let open: Vec<_> = open.map(|(task, _)| (task.clone(), agent.clone())).collect();
        if !open.is_empty() {
            out.effect(Effect::Reconcile(open));
        }
        self.forget_failed(agent, out);
    }

    pub(super) fn decline_all(&mut self, agent: &AgentId, out: &mut Outbox<Self>) {
        let offers = self.take_offers(agent);
        if !offers.is_empty() {
            out.effect(Effect::Decline { offers, refuse: None });
        }
    }

    pub(super) fn take_offer(&mut self, agent: &AgentId, offer: &OfferId) -> Option<HeldOffer> {
        self.timers.clear(&Timer::Offer(agent.clone(), offer.clone()));
        self.holders.remove(offer);
        self.agent_mut(agent)?.offers.remove(offer)
    }

    fn take_offers(&mut self, agent: &AgentId) -> Vec<OfferId> {
        let held = self.agents.get(agent).map(|agent| agent.offers.keys().cloned().collect());
        let held: Vec<OfferId> = held.unwrap_or_default();
        for offer in &held {
            self.take_offer(agent, offer);
        }
        held
    }

    pub(super) fn on_removed(&mut self, task: &TaskId, out: &mut Outbox<Self>) {
        let Some(container) = self.forget_container(task, out) else { return };
        self.names.remove(&container.occupant.name);
        self.pending.retain(|_, pending| pending.replaces.as_ref() != Some(task));
        if let Some(request) = self.launching.remove(task).and_then(|pending| pending.request) {
            let answer = Err(Rejection::Failed("the container was removed while it was created".into()));
            out.effect(Effect::Reply { request, answer });
        }
        if !matches!(container.phase, Phase::Ended { .. }) {
            out.effect(Effect::Kill { task: task.clone(), agent: AgentId::new(&*container.agent) });
        }
    }
}
