//! SUBSCRIBE: a framework registers, resubscribes, or fails over to another scheduler.
//!
//! Once the call is well-formed the answer is a stream; a rejection is an ERROR on that stream, then its end.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::call::Subscribe;
use tepui_types::{ConnId, FrameworkId, Rejection};

use super::Caller;
use crate::Effect;
use crate::entities::framework::{self, Subscription};
use crate::entities::offer;
use crate::master::{Master, Out};
use crate::rules::allocator_spec::Terms;
use crate::rules::authorization;
use crate::state::transition::Transition;
use crate::state::{Framework, FrameworkLink};
use crate::values::event::{HEARTBEAT_INTERVAL, to_scheduler};
use crate::values::timers::Timer;

pub(super) fn subscribe(master: &mut Master, now: Now, caller: Caller, call: Subscribe, out: &mut Out) {
    if caller.stream_id.is_some() {
        let message = "Subscribe calls should not include the 'Mesos-Stream-Id' header";
        return Master::reject(caller.conn, Rejection::bad_request(message), out);
    }
    let mut info = call.framework_info.into_option().unwrap_or_default();
    if info.principal.is_none() {
        info.principal = caller.principal;
    }
    let subscription = Subscription {
        info,
        suppressed: call.suppressed_roles,
        constraints: call.offer_constraints.into_option(),
    };
    let stream = Stream { conn: caller.conn, id: master.rng.uuid_text().into() };
    out.effect(Effect::OpenScheduler { conn: stream.conn, stream_id: String::from(&*stream.id) });
    let info = subscription.info.clone();
    if let Err(message) = connect(master, now, &stream, subscription, out) {
        let (conn, info) = (stream.conn, Box::new(info));
        Master::log(Transition::FrameworkRejected { conn, info, reason: message.clone() }, out);
        out.effect(Effect::Scheduler { conn: stream.conn, event: to_scheduler::error(message) });
        out.effect(Effect::CloseScheduler { conn: stream.conn });
    }
}

struct Stream {
    conn: ConnId,
    id: Arc<str>,
}

impl Stream {
    fn link(&self) -> FrameworkLink {
        FrameworkLink::Connected { conn: self.conn, stream_id: Arc::clone(&self.id) }
    }
}

fn connect(
    master: &mut Master,
    now: Now,
    stream: &Stream,
    subscription: Subscription,
    out: &mut Out,
) -> Result<(), String> {
    let terms = framework::check(master, &subscription)?;
    authorization::register_framework(master, &subscription.info)?;
    let id = match subscription.info.id.as_option() {
        Some(id) if !id.value.is_empty() => FrameworkId::from(id),
        Some(_) | None => master.next_framework_id(),
    };
    let known = master.framework(&id).cloned();
    let is_known = known.is_some();
    match known {
        None => {
            let most = master.config.limits.frameworks;
            if master.state.frameworks.size() >= most {
                return Err(format!("The limit of {most} frameworks (--max_frameworks) is reached"));
            }
            let returning = subscription.info.id.is_set();
            let mut framework = framework::fresh(now, id.clone(), subscription.info, stream.link());
            framework.reregistered_at = returning.then_some(now.wall);
            framework::insert(master, framework, terms, out);
        }
        Some(known) => resubscribe(master, now, stream, &known, subscription, terms, out)?,
    }
    if let Some(framework) = master.framework(&id).cloned() {
        Master::log(Transition::FrameworkSubscribed { framework, known: is_known }, out);
    }
    greet(master, now, stream.conn, &id, out);
    Ok(())
}

/// A known framework: its scheduler lost its stream, was replaced, or outlived a master.
fn resubscribe(
    master: &mut Master,
    now: Now,
    stream: &Stream,
    known: &Framework,
    subscription: Subscription,
    terms: Terms,
    out: &mut Out,
) -> Result<(), String> {
    let id = &known.id;
    if subscription.info.principal != known.info.principal {
        return Err(String::from("Changing framework's principal is not allowed."));
    }
    if let Some(old) = known.conn() {
        out.effect(Effect::Scheduler { conn: old, event: to_scheduler::error("Framework failed over") });
        framework::hang_up(master, id, out);
    }
    offer::withdraw_all_of(master, id);
    master.timers.clear(&Timer::Failover(id.clone()));
    let info = pb::FrameworkInfo {
        user: known.info.user.clone(),
        checkpoint: known.info.checkpoint,
        ..subscription.info
    };
    let recovered = known.link == FrameworkLink::Recovered;
    if let Some(framework) = master.framework_mut(id) {
        framework.link = stream.link();
        framework.reregistered_at = Some(now.wall);
        if recovered {
            framework.registered_at = now.wall;
        }
    }
    framework::replace(master, id, info, terms, out);
    framework::announce(master, id, out);
    Ok(())
}

/// The first words on a new stream.
fn greet(master: &mut Master, now: Now, conn: ConnId, id: &FrameworkId, out: &mut Out) {
    master.schedulers.insert(conn, id.clone());
    let subscribed = to_scheduler::subscribed(id, &master.state.master_info);
    out.effect(Effect::Scheduler { conn, event: subscribed });
    out.effect(Effect::Scheduler { conn, event: to_scheduler::heartbeat() });
    master.timers.set(Timer::Heartbeat(conn), now.mono + HEARTBEAT_INTERVAL);
}
