//! Those who only read. They stand for people at other machines, so what reading costs them must not count against the
//! master and the tasks: a thread of their own that runs when no other wants to (SCHED_IDLE).

use anyhow::{Context, Result};
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};
use tokio::runtime::{Builder, Handle, Runtime};

/// Where readers run. Dropping it ends them.
#[derive(Debug)]
pub struct Crowd {
    runtime: Option<Runtime>,
}

impl Crowd {
    pub fn start() -> Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).on_thread_start(come_last).enable_all().build();
        Ok(Self { runtime: Some(runtime.context("cannot start threads")?) })
    }

    pub fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("it is taken by the end alone").handle()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lets this thread run only when no other wants to.
pub fn come_last() {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // It can fail to say how nice the thread is, which does not count then.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
}
