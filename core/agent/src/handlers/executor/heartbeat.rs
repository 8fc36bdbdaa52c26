//! HEARTBEAT events: a sign of life on streams where little happens.

use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::executor::{Event, event};
use tepui_types::{ExecutorId, FrameworkId};

use crate::agent::{Agent, Out};
use crate::state::bookkeeping::Timer;

const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30 * 60);

/// The next one is due an interval from now.
pub(super) fn arm(agent: &mut Agent, now: Now, framework: &FrameworkId, executor: &ExecutorId) {
    agent.timers.set(Timer::Heartbeat(framework.clone(), executor.clone()), now.mono + HEARTBEAT_INTERVAL);
}

pub(crate) fn heartbeat(agent: &mut Agent, now: Now, framework: FrameworkId, id: ExecutorId, out: &mut Out) {
    let conn = agent.state.executor(&framework, &id).and_then(|executor| executor.conn());
    if conn.is_some() {
        let event = Event { r#type: Some(event::Type::HEARTBEAT), ..Default::default() };
        agent.send_to_executor(conn, event, out);
        arm(agent, now, &framework, &id);
    }
}
