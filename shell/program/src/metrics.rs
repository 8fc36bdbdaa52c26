//! Metrics that both programs write in the same form.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tepui_http::Metrics;
use tepui_runtime::Statistics;
use tepui_store::Room;

/// A timer as v1 shows it; nothing before its first use.
pub fn timer(metrics: &mut Metrics, name: &'static str, statistics: Option<Statistics>) {
    let shown = statistics.iter().flat_map(|statistics| statistics.metrics(name));
    shown.for_each(|(name, value)| metrics.gauge(name, value));
}

/// Seconds since the start of a program, given in nanoseconds of the wall clock.
pub fn uptime_secs(started_ns: u64) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_nanos(started_ns)).as_secs_f64()
}

/// The space for records, below `prefix`.
pub fn disk_room(metrics: &mut Metrics, prefix: &str, room: Room) {
    for (name, bytes) in [
        ("available", room.available_bytes),
        ("reserve", room.reserve_bytes),
        ("reserve_used", room.reserve_used_bytes),
    ] {
        metrics.gauge(format!("{prefix}/disk_{name}_bytes"), bytes as f64);
    }
}
