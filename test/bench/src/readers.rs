//! Readers of `/state`: each asks again as soon as it is answered, over a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use crate::crowd::Crowd;
use crate::report::Row;
use crate::web;

/// Readers at work.
#[derive(Debug)]
pub struct Readers {
    crowd: Crowd,
    began: Instant,
    stop: Arc<AtomicBool>,
    read: Arc<Read>,
    tasks: JoinSet<Result<()>>,
}

#[derive(Debug, Default)]
struct Read {
    documents: AtomicU64,
    bytes: AtomicU64,
}

/// What they read.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    documents: u64,
    bytes: u64,
    time: Duration,
}

impl Readers {
    pub fn start(master: &str, count: usize, gzip: bool) -> Result<Self> {
        let crowd = Crowd::start()?;
        let (stop, read) = (Arc::new(AtomicBool::new(false)), Arc::new(Read::default()));
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            tasks.spawn_on(read_on(master.to_owned(), gzip, stop.clone(), read.clone()), crowd.handle());
        }
        Ok(Self { crowd, began: Instant::now(), stop, read, tasks })
    }

    /// What was read until now. What is still being read is given up.
    pub async fn stop(mut self) -> Result<Total> {
        let time = self.began.elapsed();
        self.stop.store(true, Ordering::Relaxed);
        let (documents, bytes) = (&self.read.documents, &self.read.bytes);
        let total = Total {
            documents: documents.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
            time,
        };
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(result) => result?,
                Err(err) if err.is_cancelled() => (),
                Err(err) => return Err(err.into()),
            }
        }
        drop(self.crowd);
        Ok(total)
    }
}

impl Total {
    pub fn row(&self, row: Row) -> Row {
        row.measured("documents_per_s", self.documents as f64 / self.seconds())
            .measured("mb_per_s", self.bytes as f64 / 1e6 / self.seconds())
    }

    /// How long they read.
    pub fn seconds(&self) -> f64 {
        self.time.as_secs_f64()
    }
}

async fn read_on(master: String, gzip: bool, stop: Arc<AtomicBool>, read: Arc<Read>) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let count = |bytes: usize| {
            read.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            // A thread with SCHED_IDLE that was once chosen would keep others waiting until the next tick.
            std::thread::yield_now();
        };
        web::get_counting(&master, "/state", gzip, count).await.context("a reader of /state")?;
        read.documents.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
