//! Those who only read. They stand for people at other machines, so what reading costs them must not count against the
//! master and the tasks: a thread of their own, of the lowest priority there is.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Handle, Runtime};

const LOWEST: i32 = 19;

/// Where readers run. Dropping it ends them.
#[derive(Debug)]
pub struct Crowd {
    runtime: Option<Runtime>,
}

impl Crowd {
    pub fn start() -> Result<Self> {
        let be_nice =
            || rustix::process::setpriority_process(None, LOWEST).expect("a thread may always be nicer");
        let runtime =
            Builder::new_multi_thread().worker_threads(1).on_thread_start(be_nice).enable_all().build();
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
