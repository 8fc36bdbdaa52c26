//! How often each principal may call: `--rate_limits`, as v1 writes it.
//!
//! Calls beyond the rate wait their turn; calls beyond what may wait are refused with 429.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::Value;

use tepui_http::HttpError;

/// The longest time between two calls. Times to come stay representable, however many calls wait.
const PAUSE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// All limits. A cheap clone; without any, the rate of calls is unlimited.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    /// Without a limit of their own: unlimited, as written.
    by_name: Arc<BTreeMap<String, Option<Limit>>>,
    /// Shared by all unnamed principals.
    others: Arc<Option<Limit>>,
}

#[derive(Debug)]
struct Limit {
    /// Between two calls.
    pause: Duration,
    /// How many calls may wait; none: any number.
    capacity: Option<u64>,
    waiting: AtomicU64,
    next: Mutex<Option<Instant>>,
}

impl Throttle {
    /// Reads `{"limits":[{"principal":…,"qps":…,"capacity":…}],"aggregate_default_qps":…,…}`.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let all: Value = serde_json::from_slice(text).map_err(|err| err.to_string())?;
        let list =
            all.get("limits").map(|list| list.as_array().ok_or("'limits' is not a list")).transpose()?;
        let mut by_name = BTreeMap::new();
        for one in list.into_iter().flatten() {
            let name = one["principal"].as_str().ok_or("a limit has no 'principal'")?.to_owned();
            let limit =
                limit(one.get("qps"), one.get("capacity")).map_err(|why| format!("'{name}': {why}"))?;
            if by_name.insert(name.clone(), limit).is_some() {
                return Err(format!("'{name}' has two limits"));
            }
        }
        let others = limit(all.get("aggregate_default_qps"), all.get("aggregate_default_capacity"))?;
        Ok(Self { by_name: Arc::new(by_name), others: Arc::new(others) })
    }

    /// Whether any principal is limited.
    pub fn is_on(&self) -> bool {
        self.others.is_some() || self.by_name.values().any(Option::is_some)
    }

    /// Waits until a call of this principal is due.
    pub async fn admit(&self, name: Option<&str>) -> Result<(), HttpError> {
        let named = name.and_then(|name| self.by_name.get(name));
        match named.map_or(self.others.as_ref().as_ref(), Option::as_ref) {
            Some(limit) => limit.admit().await,
            None => Ok(()),
        }
    }
}

impl Limit {
    async fn admit(&self) -> Result<(), HttpError> {
        let Some(due) = self.take_turn(Instant::now()) else {
            return Err(HttpError::new(StatusCode::TOO_MANY_REQUESTS, "Too many calls wait already"));
        };
        let _waiting = Waiting(&self.waiting);
        tokio::time::sleep_until(due.into()).await;
        Ok(())
    }

    /// When the next call is due; none if too many wait.
    fn take_turn(&self, now: Instant) -> Option<Instant> {
        let mut next = self.next.lock().expect("no code panics while it holds this lock");
        let due = next.map_or(now, |next| next.max(now));
        let waits = due > now;
        if waits && self.capacity.is_some_and(|most| self.waiting.load(Ordering::Acquire) >= most) {
            return None;
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        *next = Some(due + self.pause);
        Some(due)
    }
}

/// A call that no longer waits, because its turn came or because it was dropped.
struct Waiting<'w>(&'w AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn limit(qps: Option<&Value>, capacity: Option<&Value>) -> Result<Option<Limit>, String> {
    let Some(qps) = qps else { return Ok(None) };
    let qps = qps.as_f64().filter(|qps| qps.is_finite() && *qps > 0.0).ok_or("the qps is not above 0")?;
    let pause = Duration::try_from_secs_f64(1.0 / qps).ok().filter(|pause| *pause <= PAUSE_MAX);
    let pause = pause.ok_or("the qps is less than one call in a year")?;
    let capacity = capacity.map(|most| most.as_u64().ok_or("the capacity is not an integer")).transpose()?;
    Ok(Some(Limit { pause, capacity, waiting: AtomicU64::new(0), next: Mutex::new(None) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_above_the_rate_are_delayed_or_rejected() {
        let text = br#"{"limits":[{"principal":"slow","qps":10,"capacity":1},{"principal":"free"}],
                        "aggregate_default_qps":1000}"#;
        let throttle = Throttle::parse(text).unwrap();
        for _ in 0..1000 {
            throttle.admit(Some("free")).await.unwrap();
        }
        throttle.admit(None).await.unwrap();
        throttle.admit(Some("slow")).await.unwrap();
        let waiting = throttle.clone();
        let second = tokio::spawn(async move { waiting.admit(Some("slow")).await });
        tokio::task::yield_now().await;
        let refused = throttle.admit(Some("slow")).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        second.await.unwrap().unwrap();
        assert!(Throttle::default().admit(Some("anybody")).await.is_ok());
    }

    #[test]
    fn invalid_limits_are_rejected_with_their_reason() {
        for (text, why) in [
            ("[", "EOF"),
            (r#"{"limits":{}}"#, "'limits' is not a list"),
            (r#"{"limits":[{}]}"#, "a limit has no 'principal'"),
            (r#"{"limits":[{"principal":"a","qps":0}]}"#, "'a': the qps is not above 0"),
            (r#"{"aggregate_default_qps":1e-15}"#, "the qps is less than one call in a year"),
            (r#"{"limits":[{"principal":"a"},{"principal":"a"}]}"#, "'a' has two limits"),
            (
                r#"{"aggregate_default_qps":1,"aggregate_default_capacity":-1}"#,
                "the capacity is not an integer",
            ),
        ] {
            let found = Throttle::parse(text.as_bytes()).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
