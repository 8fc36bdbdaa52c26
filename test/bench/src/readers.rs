//! The readers of a busy cluster: dashboards, a reader of the whole `/state`, subscribers of the operator event stream.
//!
//! They stand for other machines, so they run where `ClientRuntime` runs them. An answer that is not complete, or a subscriber that
//! is dropped, fails the benchmark.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::client_runtime::ClientRuntime;
use crate::report::Row;
use crate::spread::Spread;
use crate::web::{self, Records};

const DASHBOARD_INTERVAL: Duration = Duration::from_secs(1);
const STATE_INTERVAL: Duration = Duration::from_secs(5);

/// Who reads.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub dashboards: usize,
    pub subscribers: usize,
}

/// Readers at work.
#[derive(Debug)]
pub struct Readers {
    _runtime: ClientRuntime,
    read: Arc<Mutex<Read>>,
    events: watch::Receiver<usize>,
    tasks: JoinSet<Result<()>>,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Read {
    answers: Spread,
    bytes: usize,
    events: usize,
}

impl Readers {
    /// Starts them all; back when every subscriber has its first event. `framework` is the one whose tasks are read.
    pub async fn start(master: &str, framework: &str, plan: Plan) -> Result<Self> {
        let (runtime, mut tasks, read) = (ClientRuntime::start()?, JoinSet::new(), Arc::default());
        let (sender, mut started) = watch::channel(0);
        let (count, events) = watch::channel(0);
        for _ in 0..plan.subscribers {
            let subscriber = subscribe(master.to_owned(), sender.clone(), count.clone());
            tasks.spawn_on(subscriber, runtime.handle());
        }
        tokio::select! {
            all = started.wait_for(|started| *started >= plan.subscribers) => drop(all?),
            Some(ended) = tasks.join_next() => ended??,
        }
        let tasks_path = format!("/tasks?framework_id={framework}");
        for number in 0..plan.dashboards {
            let first = Instant::now() + DASHBOARD_INTERVAL * number as u32 / plan.dashboards as u32;
            for path in ["/state-summary", "/metrics/snapshot", &tasks_path] {
                let poll =
                    poll(master.to_owned(), path.to_owned(), first, DASHBOARD_INTERVAL, Arc::clone(&read));
                tasks.spawn_on(poll, runtime.handle());
            }
        }
        if plan.dashboards > 0 {
            let (path, first) = ("/state".to_owned(), Instant::now());
            let poll = poll(master.to_owned(), path, first, STATE_INTERVAL, read.clone());
            tasks.spawn_on(poll, runtime.handle());
        }
        Ok(Self { _runtime: runtime, read, events, tasks })
    }

    /// What was read since the last call. Fails if one of them has failed.
    pub fn read(&mut self) -> Result<Read> {
        while let Some(ended) = self.tasks.try_join_next() {
            ended??;
        }
        let mut read =
            std::mem::take(&mut *self.read.lock().expect("no code panics while it holds this lock"));
        read.events = *self.events.borrow();
        Ok(read)
    }
}

impl Read {
    /// Columns of a row, for what was read in so many seconds since `before`.
    pub fn row(&self, row: Row, before: &Read, seconds: f64) -> Row {
        row.measured("answers_per_s", self.answers.len() as f64 / seconds)
            .measured("answers_p50_ms", self.answers.percentile_ms(50.0))
            .measured("answers_max_ms", self.answers.percentile_ms(100.0))
            .measured("mb_per_s", self.bytes as f64 / 1e6 / seconds)
            .measured("events_per_s", self.events_since(before) as f64 / seconds)
    }

    pub fn events_since(&self, before: &Read) -> usize {
        self.events - before.events
    }
}

/// Reads a document at even intervals, however long the answers take.
async fn poll(
    master: String,
    path: String,
    first: Instant,
    every: Duration,
    read: Arc<Mutex<Read>>,
) -> Result<()> {
    let mut ticks = interval_at(first, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let began = Instant::now();
        let bytes = web::get(&master, &path, false).await.with_context(|| format!("a reader of {path}"))?;
        let mut read = read.lock().expect("no code panics while it holds this lock");
        read.answers.push(began.elapsed());
        read.bytes += bytes;
    }
}

async fn subscribe(
    master: String,
    started: watch::Sender<usize>,
    events: watch::Sender<usize>,
) -> Result<()> {
    let (mut stream, mut records) = (web::subscribe(&master).await?, Records::default());
    while let Some(frame) = stream.frame().await {
        let Ok(data) = frame.context("a subscriber was dropped")?.into_data() else { continue };
        let (before, count) = (records.count, records.push(&data)?);
        if before == 0 && count > 0 {
            started.send_modify(|started| *started += 1);
        }
        events.send_modify(|events| *events += count);
    }
    bail!("a subscriber was dropped")
}
