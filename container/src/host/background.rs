//! Blocking work on threads of its own. A panic there is a fault of its caller, never a success.

use std::any::Any;
use std::io;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Why work in the background has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    #[error("the agent is going down")]
    GoingDown,
    #[error("internal error: {0}")]
    Panicked(String),
}

/// Runs blocking work and waits for its result. Abandoned work runs to its end.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Interrupted> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|err| match err.try_into_panic() {
        Ok(panic) => Interrupted::Panicked(message(&*panic)),
        Err(_) => Interrupted::GoingDown,
    })
}

/// The first panic of tasks that have no caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panics(watch::Sender<Option<String>>);

impl Panics {
    pub fn watch(&self, task: JoinHandle<()>) {
        let first = self.0.clone();
        tokio::spawn(async move {
            let Err(err) = task.await else { return };
            let Ok(panic) = err.try_into_panic() else { return }; // The runtime is shutting down.
            let message = message(&*panic);
            tracing::error!(message, "a task of the containerizer panicked");
            first.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(message);
                is_first
            });
        });
    }

    pub fn first(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Resolves when there is one. Cancel safe.
    pub async fn occurred(&self) {
        // The sender is ours: it is not dropped meanwhile.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }
}

impl From<Interrupted> for io::Error {
    fn from(fault: Interrupted) -> io::Error {
        io::Error::other(fault)
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| String::from("a background task panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_fault_with_its_message() {
        assert_eq!(blocking(|| 7).await, Ok(7));
        let panicked = |text: &str| Err(Interrupted::Panicked(String::from(text)));
        assert_eq!(blocking::<()>(|| panic!("no such list")).await, panicked("no such list"));
        assert_eq!(blocking::<()>(|| panic!("no {}", "room")).await, panicked("no room"));
    }

    #[tokio::test]
    async fn a_panic_of_a_task_without_a_caller_is_reported() {
        let panics = Panics::default();
        panics.watch(tokio::spawn(async {}));
        let aborted = tokio::spawn(std::future::pending());
        aborted.abort();
        panics.watch(aborted);
        assert_eq!(panics.first(), None);
        panics.watch(tokio::spawn(async { panic!("no room") }));
        panics.occurred().await;
        assert_eq!(panics.first().as_deref(), Some("no room"));
    }
}
