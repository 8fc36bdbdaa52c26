//! The log level, and its duration: `/logging/toggle` and SET_LOGGING_LEVEL.
//!
//! Level 0 is the configured level; each level more is one more of detail. A changed level is reset by itself. The
//! meaning of a level for the log is up to the caller.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use tepui_http::{BrowserPolicy, Deed, HttpError, Request, Response, empty, text};
use tepui_types::duration_from_text;

/// The control of the log's level. A cheap clone; the default has no log to control.
#[derive(Clone)]
pub struct Logging {
    apply: Arc<dyn Fn(u32) + Send + Sync>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    level: u32,
    /// Grows with every change, so that an old one does not end a new one.
    change: u64,
}

impl Default for Logging {
    fn default() -> Self {
        Self::new(|_| ())
    }
}

impl std::fmt::Debug for Logging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logging").field("level", &self.level()).finish_non_exhaustive()
    }
}

impl Logging {
    /// `apply` makes a level take effect; it is called with 0 to go back.
    pub fn new(apply: impl Fn(u32) + Send + Sync + 'static) -> Self {
        Self { apply: Arc::new(apply), state: Arc::default() }
    }

    pub fn level(&self) -> u32 {
        self.state.lock().expect("no code panics while it holds this lock").level
    }

    /// Sets a level; it goes back to 0 after `duration`, unless it is changed again.
    pub fn set(&self, level: u32, duration: Duration) {
        let change = self.change(level, None).unwrap_or_default();
        let this = self.clone();
        // Ends with its sleep; it has nothing to fail by.
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            this.change(0, Some(change));
        });
    }

    /// `/logging/toggle?level=N&duration=5mins`; without a query the level as it is.
    pub fn toggle(&self, request: &Request) -> Result<Response, HttpError> {
        let (level, duration) = (request.query.get("level"), request.query.get("duration"));
        let (level, duration) = match (level, duration) {
            (None, None) => return Ok(text(StatusCode::OK, format!("{}\n", self.level()))),
            // A change, although v1 lets it be read.
            (Some(level), Some(duration)) => {
                request.note(Deed::new("SET_LOGGING_LEVEL").on("level", level));
                BrowserPolicy::check_site(&request.headers)?;
                (level, duration)
            }
            (None, Some(_)) => return Err(HttpError::bad_request("Expecting 'level=value' in query.\n")),
            (Some(_), None) => return Err(HttpError::bad_request("Expecting 'duration=value' in query.\n")),
        };
        let parsed =
            level.parse::<i64>().map_err(|err| HttpError::bad_request(format!("{err}: '{level}'.\n")))?;
        let level = u32::try_from(parsed)
            .map_err(|_| HttpError::bad_request(format!("Invalid level '{parsed}'.\n")))?;
        let duration = duration_from_text(duration)
            .ok_or_else(|| HttpError::bad_request(format!("Invalid duration '{duration}'.\n")))?;
        self.set(level, duration);
        Ok(empty(StatusCode::OK))
    }

    /// Changes the level; with `only` just if nothing changed since. Which change it was.
    fn change(&self, level: u32, only: Option<u64>) -> Option<u64> {
        let mut state = self.state.lock().expect("no code panics while it holds this lock");
        if only.is_some_and(|change| change != state.change) {
            return None;
        }
        state.change += 1;
        if state.level != level {
            tracing::info!(from = state.level, to = level, "logging level changed");
            state.level = level;
            (self.apply)(level);
        }
        Some(state.change)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn log_level_reverts_after_its_duration_unless_changed() {
        let (sender, applied) = channel();
        let logging = Logging::new(move |level| sender.send(level).unwrap());
        let first = logging.change(2, None);
        let second = logging.change(1, None);
        assert_eq!(logging.change(0, first), None, "the first change does not end the second");
        assert_eq!(logging.level(), 1);
        assert!(logging.change(0, second).is_some());
        logging.set(3, Duration::from_millis(1));
        assert_eq!(logging.level(), 3);
        while logging.level() != 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(applied.try_iter().collect::<Vec<_>>(), [2, 1, 0, 3, 0]);
    }
}
