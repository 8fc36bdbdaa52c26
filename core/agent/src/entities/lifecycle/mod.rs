//! The lives of frameworks, executors and tasks on this agent, whatever caused the change.
//!
//! Handlers of calls, events and timers decide *that* something starts or ends; here is *how*. Consequences for
//! executors and frameworks are drawn by `reconcile`.

mod deadlines;
mod deliver;
mod end;
mod framework;
mod kill;
mod overdue;
mod shutdown;
mod shutdown_framework;
mod start;

pub(crate) use deadlines::await_kills;
pub(crate) use deliver::{deliver, resize};
pub(crate) use end::{acknowledge, executor_ended, exited_executor, remove_executor_if_done};
pub(crate) use framework::{end_if_done, remove_framework_if_done, update_framework};
pub(crate) use kill::{kill_task, resend_kills};
pub(crate) use overdue::{at_work, end_if_overdue, end_leftover, report_overdue_tasks};
pub(crate) use shutdown::{destroy, preempt, shutdown_executor};
pub(crate) use shutdown_framework::{end_everything, shutdown_framework};
pub(crate) use start::{add, launch, new_task, start_waiting};
