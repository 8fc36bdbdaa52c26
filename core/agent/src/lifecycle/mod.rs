//! The lives of frameworks, executors and tasks on this agent, whoever caused the change.
//!
//! Handlers of calls, events and timers decide *that* something starts or ends; here is *how*.

mod admit;
mod deliver;
mod end;
mod framework;
mod limits;
mod overdue;
mod shutdown;
mod start;
mod volumes;

pub(crate) use admit::{Launching, missing_isolator, run};
pub(crate) use deliver::{deliver, resize, unqueue};
pub(crate) use end::{complete_task, executor_ended, remove_executor_if_done};
pub(crate) use framework::{
    end_everything, end_if_done, remove_framework_if_done, shutdown_framework, stored_framework,
    update_framework,
};
pub(crate) use limits::LIMITED;
pub(crate) use overdue::{
    await_kill, await_kill_again, await_kills, container_over, end_if_overdue, end_leftover, killed, overdue,
    say_what_is_over, time_over,
};
pub(crate) use shutdown::{
    destroy, grace_over, preempt, registration_over, shutdown_executor, shutdown_grace,
};
pub(crate) use start::{new_task, record_executor, record_task, start_waiting, stored_executor};
pub use volumes::volume_path;
pub(crate) use volumes::volumes;
