//! The runtime of simulated readers. They represent clients on other machines, so their own cost must not count against
//! the master and the tasks: one thread that runs only when no other does (SCHED_IDLE).

use anyhow::{Context, Result};
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};
use tokio::runtime::{Builder, Handle, Runtime};

/// Dropping it terminates the readers.
#[derive(Debug)]
pub struct ClientRuntime {
    runtime: Option<Runtime>,
}

impl ClientRuntime {
    pub fn start() -> Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).on_thread_start(come_last).enable_all().build();
        Ok(Self { runtime: Some(runtime.context("cannot start threads")?) })
    }

    pub fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("it is taken by the end alone").handle()
    }
}

impl Drop for ClientRuntime {
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
