//! The master's metrics under their v1 names: counts that the snapshot carries, gauges derived from it, and what the
//! shell itself can see (queues, times, the system).

mod allocator;
mod cluster;
mod framework;
mod names;
mod slack;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tepui_core_master::State;
use tepui_http::{DocumentWriter, Encoding, Metrics, MetricsForm};
use tepui_program::System;
use tepui_program::metrics::{disk_room, timer, uptime_secs};
use tepui_proto::mesos::v1::master::{Response, response};
use tepui_runtime::{Commits, TurnTimes};

use crate::index::Index;
use crate::metered::AllocationTimes;
use crate::roles::{Roles, total};

/// What the shell can see besides the state.
#[derive(Clone)]
pub(crate) struct Sensors {
    pub commits: Arc<Commits>,
    pub turns: Arc<TurnTimes>,
    pub allocations: Arc<AllocationTimes>,
    /// How long reading the registry took.
    pub registry_fetch: Duration,
    /// Its file; none if it is in memory.
    pub registry_file: Option<PathBuf>,
    pub per_framework: bool,
}

/// What waits at this moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queues {
    pub inputs: usize,
    pub requests: usize,
    pub operators: usize,
    pub shared_renditions: u64,
}

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    Document(MetricsForm),
    /// GET_METRICS.
    List(Encoding),
}

impl Form {
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Document(form) => form.content_type(),
            Form::List(encoding) => encoding.name(),
        }
    }

    pub fn draw(self, metrics: &Metrics, mut writer: DocumentWriter) {
        match self {
            Form::Document(form) => form.draw(metrics, writer),
            Form::List(encoding) => {
                let get_metrics = response::GetMetrics { metrics: metrics.list(), ..Default::default() };
                let kind = Some(response::Type::GET_METRICS);
                let answer = Response { r#type: kind, get_metrics: get_metrics.into(), ..Default::default() };
                writer.write(encoding.encode(&answer).to_vec());
                writer.finish();
            }
        }
    }
}

pub(crate) fn collect(state: &State, sensors: &Sensors, queues: Queues) -> Metrics {
    let mut metrics = Metrics::default();
    let index = Index::new(state);
    let (roles, total) = (Roles::new(state, &index), total(state));
    metrics.gauge("master/uptime_secs", uptime_secs(state.started_at.0));
    metrics.gauge("master/elected", 1.0);
    metrics.gauge("master/event_queue_messages", queues.inputs as f64);
    metrics.gauge("master/event_queue_dispatches", sensors.commits.waiting() as f64);
    metrics.gauge("master/event_queue_http_requests", queues.requests as f64);
    metrics.gauge("master/operator_event_stream_subscribers", queues.operators as f64);
    metrics.counter("master/http_cache_hits", queues.shared_renditions);
    turns(&mut metrics, &sensors.turns);
    cluster::add(&mut metrics, state, &index, &roles, &total);
    if sensors.per_framework {
        framework::add(&mut metrics, state);
    }
    allocator::add(&mut metrics, state, &roles, &total, &sensors.allocations);
    slack::add(&mut metrics, state, &index, &roles.used);
    let taken_back = sensors.allocations.take_back.statistics(Instant::now());
    timer(&mut metrics, "allocator/slack/take_back_ms", taken_back);
    registrar(&mut metrics, sensors);
    System::now().add_to(&mut metrics);
    metrics
}

/// Not of v1: durations of the machine's turns, during which no other input is handled.
fn turns(metrics: &mut Metrics, turns: &TurnTimes) {
    let now = Instant::now();
    timer(metrics, "master/turn_ms", turns.wall.statistics(now));
    timer(metrics, "master/turn_cpu_ms", turns.cpu.statistics(now));
    metrics.counter("master/turns", turns.turns());
    metrics.counter("master/turns_over_1ms", turns.long());
    metrics.counter("master/turns_over_1ms_cpu", turns.long_cpu());
}

fn registrar(metrics: &mut Metrics, sensors: &Sensors) {
    let size = sensors.registry_file.as_ref().and_then(|file| std::fs::metadata(file).ok());
    metrics.gauge("registrar/queued_operations", sensors.commits.waiting() as f64);
    metrics.gauge("registrar/registry_size_bytes", size.map_or(0.0, |file| file.len() as f64));
    metrics.gauge("registrar/state_fetch_ms", sensors.registry_fetch.as_secs_f64() * 1000.0);
    if let Some(room) = sensors.commits.room() {
        metrics.gauge("registrar/disk_pressure", f64::from(u8::from(room.is_short)));
        // etcd does not report its available space, and has no reserve.
        if sensors.registry_file.is_some() {
            disk_room(metrics, "registrar", room);
        }
    }
    // v1's log has replicas; ours is one file, which is read before the first request.
    metrics.gauge("registrar/log/recovered", 1.0);
    metrics.gauge("registrar/log/ensemble_size", 1.0);
    timer(metrics, "registrar/state_store_ms", sensors.commits.timings.statistics(Instant::now()));
}
