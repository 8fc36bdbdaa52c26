//! Blocking work on threads of its own. A panic there is a fault of its caller, never a success.

use std::any::Any;
use std::io;

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
}
