//! Renderings: who asks for the same thing gets the same answer, made once.
//!
//! Of each thing one rendition is made at a time. A reader takes the newest if that is as new as its question; if an
//! older one is still being made it waits, and shares the next with everybody who waits. Small renditions are kept until
//! there is a newer one, large ones as long as somebody reads them.
//! Renderers are a few threads that come last: however much is read, whoever decides comes first.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::rendition::{Pen, Rendition};
use crate::way::come_last;

/// Threads that render: two at least, so that what is small need not wait for what is large.
const RENDERERS_MIN: usize = 2;
const RENDERERS_MAX: usize = 4;

/// Larger renditions are not kept for readers to come.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// Renditions by what they show. A cheap clone.
pub struct Renderings<K> {
    inner: Arc<Inner<K>>,
    jobs: Sender<Job>,
}

struct Inner<K> {
    newest: Mutex<HashMap<K, Weak<Rendition>>>,
    kept: Mutex<HashMap<K, Arc<Rendition>>>,
    shared: AtomicU64,
}

/// What is to be rendered: its version, whether compressed, and how.
pub struct Order {
    pub version: u64,
    pub gzip: bool,
    pub render: Box<dyn FnOnce(Pen) + Send>,
}

impl<K: Eq + Hash + Clone + Send + 'static> Renderings<K> {
    /// Starts the renderers.
    pub fn start() -> std::io::Result<Self> {
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..(cores / 2).clamp(RENDERERS_MIN, RENDERERS_MAX) {
            let waiting = waiting.clone();
            // Ends when every `Renderings` is gone. A job that panics takes its thread with it: its pen breaks the
            // rendition, and the readers are told.
            std::thread::Builder::new().name("render".to_owned()).spawn(move || work(&waiting))?;
        }
        let inner = Inner {
            newest: Mutex::new(HashMap::new()),
            kept: Mutex::new(HashMap::new()),
            shared: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner), jobs })
    }

    /// The rendition of `key` that is at least as new as `arrived`; `order` says how to make it from the newest state.
    pub async fn get(&self, key: K, arrived: u64, order: impl Fn() -> Order) -> Arc<Rendition> {
        loop {
            let under_way = {
                let mut newest = lock(&self.inner.newest);
                match newest.get(&key).and_then(Weak::upgrade) {
                    Some(rendition) if rendition.version >= arrived => {
                        self.inner.shared.fetch_add(1, Ordering::Relaxed);
                        return rendition;
                    }
                    Some(rendition) if !rendition.is_over() => rendition,
                    Some(_) | None => {
                        let (rendition, job) = self.prepare(key.clone(), order());
                        newest.insert(key, Arc::downgrade(&rendition));
                        self.submit(job);
                        return rendition;
                    }
                }
            };
            under_way.over().await;
        }
    }

    /// How many answers were not made because they were there.
    pub fn shared(&self) -> u64 {
        self.inner.shared.load(Ordering::Relaxed)
    }

    /// A rendition that is nobody else's.
    pub fn alone(&self, order: Order) -> Arc<Rendition> {
        let (rendition, pen) = Rendition::begin(order.version, order.gzip);
        self.submit(Box::new(move || (order.render)(pen)));
        rendition
    }

    fn prepare(&self, key: K, order: Order) -> (Arc<Rendition>, Job) {
        let (rendition, pen) = Rendition::begin(order.version, order.gzip);
        let (inner, made) = (self.inner.clone(), rendition.clone());
        let job = Box::new(move || {
            (order.render)(pen);
            let mut kept = lock(&inner.kept);
            match made.is_over() && made.bytes() <= KEPT_BYTES_MAX {
                true => kept.insert(key, made),
                false => kept.remove(&key),
            };
        });
        (rendition, job)
    }

    fn submit(&self, job: Job) {
        if let Err(lost) = self.jobs.send(job) {
            // Every renderer has panicked; what is asked for now is made where it may take its time.
            tokio::task::spawn_blocking(lost.0);
        }
    }
}

impl<K> Clone for Renderings<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), jobs: self.jobs.clone() }
    }
}

impl<K> std::fmt::Debug for Renderings<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Renderings")
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    come_last();
    loop {
        let job = lock(waiting).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds this lock")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn order(version: u64, made: &Arc<AtomicUsize>) -> Order {
        let made = made.clone();
        let render = Box::new(move |mut pen: Pen| {
            made.fetch_add(1, Ordering::Relaxed);
            pen.write(version.to_string().into_bytes());
            pen.finish();
        });
        Order { version, gzip: false, render }
    }

    #[tokio::test]
    async fn the_same_question_is_answered_once() {
        let renderings = Renderings::start().unwrap();
        let made = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let rendition = renderings.get("state", 3, || order(3, &made)).await;
            assert_eq!(rendition.whole().await.unwrap(), "3");
        }
        assert_eq!((made.load(Ordering::Relaxed), renderings.shared()), (1, 9));
        let newer = renderings.get("state", 4, || order(5, &made)).await;
        assert_eq!(newer.whole().await.unwrap(), "5");
        assert_eq!(renderings.get("state", 4, || order(6, &made)).await.version, 5);
        assert_eq!(renderings.get("tasks", 4, || order(6, &made)).await.version, 6);
        assert_eq!(renderings.alone(order(9, &made)).whole().await.unwrap(), "9");
    }

    #[tokio::test]
    async fn who_comes_while_an_older_one_is_made_shares_the_next() {
        let renderings = Renderings::start().unwrap();
        let (go, held) = channel::<()>();
        let held = Mutex::new(Some(held));
        let first = renderings
            .get("state", 2, || {
                let held = lock(&held).take().unwrap();
                let render = Box::new(move |pen: Pen| {
                    let _ = held.recv();
                    pen.finish();
                });
                Order { version: 2, gzip: false, render }
            })
            .await;
        let made = Arc::new(AtomicUsize::new(0));
        let next = || renderings.get("state", 3, || order(3, &made));
        let (a, b, ()) = tokio::join!(next(), next(), async { go.send(()).unwrap() });
        assert_eq!((first.version, a.version, b.version), (2, 3, 3));
        a.over().await;
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
