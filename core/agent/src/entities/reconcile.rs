//! The consequences of changes: one pass over everything that handlers touched.
//!
//! A handler changes state and marks what it touched; nothing here runs over half-changed state. The pass ends: each
//! round follows from a task or executor that became terminal, or from a launch that could start, and both happen once.

use tepui_fsm::Now;

use crate::agent::{Agent, Out};
use crate::entities::{lifecycle, slack};
use crate::state::bookkeeping::ExecutorKey;

/// Runs after every input and timer; handlers that need the outcome call it themselves.
pub(crate) fn reconcile(agent: &mut Agent, now: Now, out: &mut Out) {
    while !agent.touched.is_empty() {
        while let Some(key) = agent.touched.executors.pop_first() {
            executor(agent, now, &key, out);
        }
        while let Some(framework) = agent.touched.frameworks.pop_first() {
            lifecycle::remove_framework_if_done(agent, now, &framework, out);
        }
        if core::mem::take(&mut agent.touched.slack) {
            slack::settle(agent, now, out);
        }
    }
}

/// Times out, resizes, delivers and releases, each only if it applies.
fn executor(agent: &mut Agent, now: Now, (framework, id): &ExecutorKey, out: &mut Out) {
    lifecycle::resize(agent, framework, id, out);
    lifecycle::end_if_overdue(agent, now, framework, id, out);
    lifecycle::report_overdue_tasks(agent, now, framework, id, out);
    lifecycle::deliver(agent, now, framework, id, out);
    lifecycle::remove_executor_if_done(agent, now, framework, id, out);
}
