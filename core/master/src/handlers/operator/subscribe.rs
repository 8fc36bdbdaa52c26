//! SUBSCRIBE: the state as it is now, then every change.

use alloc::boxed::Box;
use alloc::sync::Arc;

use tepui_fsm::Now;
use tepui_types::ConnId;

use crate::Effect;
use crate::master::{Master, Out};
use crate::state::notice;
use crate::values::event::HEARTBEAT_INTERVAL;
use crate::values::timers::Timer;

pub(super) fn subscribe(master: &mut Master, now: Now, conn: ConnId, out: &mut Out) {
    if master.operators.len() >= master.config.max_operator_event_stream_subscribers
        && let Some(oldest) = master.operators.pop_front()
    {
        out.effect(Effect::CloseOperator { conn: oldest });
    }
    if master.operators.is_empty() {
        master.timers.set(Timer::OperatorHeartbeat, now.mono + HEARTBEAT_INTERVAL);
    }
    master.operators.push_back(conn);
    let (state, next) = (Box::new(master.state.clone()), Arc::new(notice::heartbeat()));
    out.effect(Effect::OpenOperator { conn, state, next });
}
