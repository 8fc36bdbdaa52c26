//! Due timers: each is passed to its handler.

use tepui_fsm::{Budget, Now};
use tepui_types::ConnId;

use crate::Effect;
use crate::entities::{agent_expiry, framework, inverse, offer, operation, reachability};
use crate::master::{Master, Out};
use crate::state::notice;
use crate::state::transition::FrameworkRemoval;
use crate::values::event::{HEARTBEAT_INTERVAL, to_scheduler};
use crate::values::timers::Timer;

/// Runs what is due, for as long as the budget lasts. Ends: whatever sets a timer sets it into the future.
pub(crate) fn run_due(master: &mut Master, now: Now, budget: &mut Budget<'_>, out: &mut Out) {
    while let Some(timer) = master.timers.pop_due(now.mono) {
        run(master, now, timer, out);
        if !budget() {
            return;
        }
    }
}

fn run(master: &mut Master, now: Now, timer: Timer, out: &mut Out) {
    match timer {
        Timer::Heartbeat(conn) => heartbeat(master, now, conn, out),
        Timer::OperatorHeartbeat => operator_heartbeat(master, now, out),
        Timer::Ping(id) => reachability::ping(master, now, &id, out),
        Timer::Reregister(id) => reachability::not_back(master, now, &id, out),
        Timer::Unreachable(id) => reachability::mark_unreachable(master, now, &id, out),
        Timer::RecoveredAgents => reachability::recovered_not_back(master, now, out),
        Timer::Failover(id) => framework::remove(master, now, &id, FrameworkRemoval::FailoverTimeout, out),
        Timer::Offer(id) => offer::expire(master, &id, out),
        Timer::InverseOffer(id) => inverse::rescind(master, &id, out),
        Timer::OrphanOperations(id) => operation::acknowledge_orphans(master, &id, out),
        Timer::RegistryGc => agent_expiry::collect(master, now, out),
    }
}

fn heartbeat(master: &mut Master, now: Now, conn: ConnId, out: &mut Out) {
    if master.schedulers.contains_key(&conn) {
        out.effect(Effect::Scheduler { conn, event: to_scheduler::heartbeat() });
        master.timers.set(Timer::Heartbeat(conn), now.mono + HEARTBEAT_INTERVAL);
    }
}

fn operator_heartbeat(master: &mut Master, now: Now, out: &mut Out) {
    if !master.operators.is_empty() {
        master.notify(notice::heartbeat, out);
        master.timers.set(Timer::OperatorHeartbeat, now.mono + HEARTBEAT_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use tepui_fsm::{Fsm, Mono, Outbox, Wall};
    use tepui_registry::Registry;

    use super::*;
    use crate::Config;

    #[test]
    fn timers_beyond_the_budget_run_in_the_next_turn() {
        let now = Now { mono: Mono(5), wall: Wall(5) };
        let mut master = Master::new(Config::default(), Registry::default(), now);
        let before = master.timers.len();
        (1..=3).for_each(|conn| master.timers.set(Timer::Heartbeat(ConnId(conn)), Mono(conn)));
        for left in [2, 1] {
            run_due(&mut master, now, &mut || false, &mut Outbox::new());
            assert_eq!(master.timers.len(), before + left);
            assert!(master.deadline().is_some_and(|next| next <= now.mono), "the next turn is due at once");
        }
        run_due(&mut master, now, &mut || true, &mut Outbox::new());
        assert_eq!(master.timers.len(), before);
    }
}
