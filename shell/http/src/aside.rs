//! Where those who only read are served: a runtime of a few threads that run when no other of this program wants to.
//!
//! A connection begins in the front, where whoever decides, launches and runs tasks is heard. Before a large answer or
//! the operators' event stream is written it moves aside, and back before the next answer that is neither. However much
//! is read, and however slowly, the front does not write it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use thread_priority::ThreadPriority;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

use crate::way::come_last;

/// Threads aside, at most.
const THREADS_MAX: usize = 4;

/// Nicer than this nobody can be.
const NICEST: i32 = 19;

/// Larger bodies are written aside.
pub(crate) const ASIDE_BYTES_MIN: usize = 64 * 1024;

/// The threads aside. Dropping it ends what is still served there.
#[derive(Debug)]
pub(crate) struct Aside {
    runtime: Option<Runtime>,
}

/// Where a connection belongs: set by its answers, obeyed by `serve`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    aside: Arc<AtomicBool>,
}

/// A connection that is served, from its first request to its end.
pub(crate) type Talk = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Aside {
    pub fn start() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((cores / 2).clamp(1, THREADS_MAX))
            .thread_name("aside")
            .on_thread_start(come_last)
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    pub fn handle(&self) -> Handle {
        self.runtime.as_ref().expect("it is taken by the end alone").handle().clone()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads is not allowed where this may happen.
            runtime.shutdown_background();
        }
    }
}

impl Place {
    /// Says where the next answer is to be written, and lets `serve` go there first.
    pub async fn choose(&self, aside: bool) {
        if self.aside.swap(aside, Ordering::Relaxed) != aside {
            tokio::task::yield_now().await;
        }
    }

    fn is_aside(&self) -> bool {
        self.aside.load(Ordering::Relaxed)
    }
}

/// Serves a connection to its end, in the front or aside as its place says.
pub(crate) async fn serve(talk: Talk, place: Place, aside: Handle) {
    let mut next = Some(talk);
    while let Some(talk) = next {
        next = match place.is_aside() {
            false => stay(talk, place.clone(), false).await,
            true => {
                // A set, because it takes its task with it when it is dropped.
                let mut there = JoinSet::new();
                there.spawn_on(stay(talk, place.clone(), true), &aside);
                match there.join_next().await {
                    Some(Ok(next)) => next,
                    Some(Err(err)) if err.is_panic() => std::panic::resume_unwind(err.into_panic()),
                    Some(Err(_)) | None => None,
                }
            }
        };
    }
}

/// Serves a connection while it belongs here; then it is given back, unless it has ended.
async fn stay(mut talk: Talk, place: Place, aside: bool) -> Option<Talk> {
    let ended = std::future::poll_fn(|cx| match talk.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending if place.is_aside() != aside => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    });
    match ended.await {
        true => None,
        false => Some(talk),
    }
}

/// Lets this thread run only while no other thread of the program (more exactly: of its cgroup) wants to: whoever wakes up
/// takes its place at once, which a thread that is merely nice may delay by a whole slice.
pub(crate) fn be_last() {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    if let Err(err) = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy) {
        tracing::debug!(%err, "a thread cannot wait for all others");
        be_nice(NICEST);
    }
}

/// So much nicer than the program: of this thread alone, as Linux has it. Without the right to, all are equal.
pub fn be_nice(by: i32) {
    use rustix::process::{getpid, getpriority_process, setpriority_process};
    // The first thread's, which has the id of the program: this one may have been started by a nice one.
    let own = getpriority_process(Some(getpid()));
    if let Err(err) = own.and_then(|own| setpriority_process(None, (own + by).min(NICEST))) {
        tracing::debug!(%err, "a thread has the priority of everybody else");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn who_serves_readers_comes_last() {
        use thread_priority::unix::thread_schedule_policy;
        let aside = Aside::start().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        aside.handle().spawn(async move { tell.send(thread_schedule_policy()).unwrap() });
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        assert_eq!(told.recv().unwrap().unwrap(), idle);
        assert_ne!(thread_schedule_policy().unwrap(), idle);
    }

    #[test]
    fn a_nicer_thread_is_nicer_than_the_program_and_no_other_thread_is() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        let nice = move |by| (be_nice(by), own()).1;
        let twice = std::thread::spawn(move || [nice(1), nice(1), nice(100)]).join().unwrap();
        assert_eq!(twice, [1, 1, 100].map(|by| (before + by).min(NICEST)));
        assert_eq!(own(), before);
    }

    #[tokio::test]
    async fn a_connection_moves_aside_and_back() {
        let aside = Aside::start().unwrap();
        let place = Place::default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (chosen, names) = (place.clone(), seen.clone());
        let talk = Box::pin(async move {
            for wanted in [false, true, true, false] {
                chosen.choose(wanted).await;
                let thread = std::thread::current();
                names.lock().unwrap().push(thread.name() == Some("aside"));
            }
        });
        serve(talk, place, aside.handle()).await;
        assert_eq!(*seen.lock().unwrap(), [false, true, true, false]);
    }

    #[tokio::test]
    async fn a_connection_that_is_given_up_ends_also_aside() {
        let aside = Aside::start().unwrap();
        let place = Place::default();
        let (chosen, held) = (place.clone(), Arc::new(()));
        let (inside, (there, arrived)) = (held.clone(), tokio::sync::oneshot::channel());
        let talk = Box::pin(async move {
            let _inside = inside;
            chosen.choose(true).await;
            there.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        let mut connections = JoinSet::new();
        connections.spawn(serve(talk, place, aside.handle()));
        arrived.await.unwrap();
        drop(connections);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
