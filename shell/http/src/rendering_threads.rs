//! The threads that render: few, and behind all others. A thread that decides or answers a call never waits for the end of
//! a rendering on the same processor.

use std::num::NonZero;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Niceness relative to the other threads: leaves them about a tenth of a processor if the others use all of it.
const NICENESS: i32 = 10;

/// How long a thread without work lives: longer than readers that come now and then stay away.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// As comm names them.
const NAME: &str = "rendering";

/// The blocking threads of a runtime that has no others. Dropping it ends them after what they render.
#[derive(Debug)]
pub(crate) struct RenderingThreads {
    /// None while it is dropped.
    runtime: Option<Runtime>,
}

impl RenderingThreads {
    /// So many at most; each is started when it is needed and ends when it has been idle for a while.
    pub fn new(count_max: NonZero<usize>) -> Self {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(count_max.get())
            .thread_keep_alive(KEEP_ALIVE)
            .thread_name(NAME)
            .on_thread_start(come_later)
            .build()
            .expect("without timers and sockets it needs nothing of the system");
        Self { runtime: Some(runtime) }
    }

    /// An error if the work panics.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.runtime.as_ref().expect("it is taken by drop alone").spawn_blocking(work)
    }
}

impl Drop for RenderingThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// On Linux this concerns the calling thread alone.
fn come_later() {
    // A thread that cannot be made nicer renders all the same.
    let _ = rustix::process::nice(NICENESS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rendering_threads_alone_have_a_lower_priority() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let (own, threads) = (niceness(), RenderingThreads::new(NonZero::<usize>::MIN));
        let name = || std::thread::current().name().map(str::to_owned);
        let rendering = threads.run(move || (niceness(), name())).await.unwrap();
        assert_eq!(rendering, ((own + NICENESS).min(19), Some(NAME.to_owned())));
        assert_eq!(niceness(), own);
    }

    /// Inside a runtime nothing may wait.
    #[tokio::test]
    async fn drop_does_not_wait_for_rendering_threads() {
        let threads = RenderingThreads::new(NonZero::<usize>::MIN);
        let ((begun, begins), (go, may_go)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        let rendering = threads.run(move || (begun.send(()).is_ok(), may_go.recv().is_ok()));
        begins.recv().unwrap();
        drop(threads);
        go.send(()).unwrap();
        assert_eq!(rendering.await.unwrap(), (true, true), "what was begun is rendered");
    }
}
