//! Renderings: readers that request the same thing share one answer, rendered once.
//!
//! A reader gets the newest rendition if that is as new as the request. Otherwise the next one is queued, and everyone who
//! requests the same before its rendering begins shares it. Rendering happens on threads of its own, a few at a time.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use crate::rendering_threads::RenderingThreads;
use crate::rendition::{DocumentWriter, Rendition};

/// Renderings at a time: half of the processors, at most this many, so that the others are free for everything else.
const RENDERINGS_CONCURRENT_MAX: usize = 4;

/// The same thing is not rendered again for this many times as long as its last rendering took: however often it is
/// requested, rendering it takes a twentieth of one processor.
const RENDERING_PAUSE_FACTOR: u32 = 19;

/// No pause needs to be longer, so that readers of something large need not wait for long: but for
/// `RENDERING_PAUSE_FACTOR_MIN` times as long as the rendering took, which leaves it a quarter of one processor.
const RENDERING_PAUSE_ENOUGH: Duration = Duration::from_secs(1);
const RENDERING_PAUSE_FACTOR_MIN: u32 = 3;

/// Renditions kept for later readers, and how large each may be; larger ones live as long as they are read.
const RENDITIONS_KEPT_MAX: usize = 32;
const RENDITION_KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// All renditions in memory. Beyond that, readers of the oldest ones are disconnected; the newest is always complete.
const RENDITIONS_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// For what changes without a new version: only a rendering that has not begun is new enough.
pub const UNVERSIONED: u64 = u64::MAX;

/// Renditions by what they show. A cheap clone.
pub struct Renderings<K> {
    shared: Arc<Shared<K>>,
    runtime: Handle,
}

struct Shared<K> {
    /// As many as there are threads: a rendering is given up as long as it waits for one.
    permits: Semaphore,
    threads: RenderingThreads,
    table: Mutex<Table<K>>,
    hits: AtomicU64,
}

struct Table<K> {
    newest: HashMap<K, Newest>,
    /// Oldest first.
    kept: VecDeque<(K, Arc<Rendition>)>,
    /// Every rendition that is read or kept, oldest first.
    held: VecDeque<Weak<Rendition>>,
    bytes_max: usize,
}

struct Newest {
    rendition: Weak<Rendition>,
    /// Locked while this is rendered; then the time before which it is not rendered again.
    turn: Turn,
}

type Turn = Arc<tokio::sync::Mutex<Option<Instant>>>;

impl<K: Eq + Hash + Clone + Send + 'static> Renderings<K> {
    /// Must be called inside a tokio runtime.
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let half =
            NonZero::new((processors / 2).min(RENDERINGS_CONCURRENT_MAX)).unwrap_or(NonZero::<usize>::MIN);
        Self::with_limits(half, RENDITIONS_BYTES_MAX)
    }

    fn with_limits(concurrent_max: NonZero<usize>, bytes_max: usize) -> Self {
        let (newest, kept, held) = (HashMap::new(), VecDeque::new(), VecDeque::new());
        let table = Mutex::new(Table { newest, kept, held, bytes_max });
        let permits = Semaphore::new(concurrent_max.get());
        let threads = RenderingThreads::new(concurrent_max);
        let shared = Shared { permits, threads, table, hits: AtomicU64::new(0) };
        Self { shared: Arc::new(shared), runtime: Handle::current() }
    }

    /// The rendition of `key` at least as new as version `arrived`. `render` must take the newest state when it is called,
    /// not before, and say its version.
    pub fn get(
        &self,
        key: K,
        arrived: u64,
        gzip: bool,
        render: impl FnOnce(DocumentWriter) + Send + 'static,
    ) -> Arc<Rendition> {
        let mut table = self.shared.lock();
        let newest = table.newest.get(&key);
        if let Some(rendition) = newest.and_then(|newest| newest.rendition.upgrade())
            && rendition.is_as_new_as(arrived)
            && !rendition.is_broken()
        {
            self.shared.hits.fetch_add(1, Ordering::Relaxed);
            return rendition;
        }
        let turn = newest.map_or_else(Turn::default, |newest| newest.turn.clone());
        let (rendition, writer) = Rendition::begin(gzip);
        table.add(&rendition);
        let newest = Newest { rendition: Arc::downgrade(&rendition), turn: turn.clone() };
        table.newest.insert(key.clone(), newest);
        let shared = self.shared.clone();
        self.runtime.spawn(async move {
            let mut not_before = turn.lock().await;
            if let Some(at) = *not_before {
                sleep_until(at).await;
            }
            if let Some((rendition, took)) = shared.render(writer, render).await {
                *not_before = Some(Instant::now() + pause(took));
                shared.lock().keep(key, rendition);
            }
        });
        rendition
    }

    /// A rendition for one reader, or for readers chosen by the caller.
    pub fn alone(&self, gzip: bool, render: impl FnOnce(DocumentWriter) + Send + 'static) -> Arc<Rendition> {
        let (rendition, writer) = Rendition::begin(gzip);
        self.shared.lock().add(&rendition);
        let shared = self.shared.clone();
        self.runtime.spawn(async move { shared.render(writer, render).await });
        rendition
    }

    /// Work of another kind that takes about as long as a rendering, within the same limit.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) {
        let shared = self.shared.clone();
        self.runtime.spawn(async move {
            let _permit = shared.permit().await;
            if let Err(err) = shared.threads.run(work).await {
                tracing::error!(%err, "cannot render a document");
            }
        });
    }

    /// How many answers were not rendered because they were there.
    pub fn hits(&self) -> u64 {
        self.shared.hits.load(Ordering::Relaxed)
    }
}

/// How long something whose rendering took so long is not rendered again.
fn pause(took: Duration) -> Duration {
    (took * RENDERING_PAUSE_FACTOR).min(RENDERING_PAUSE_ENOUGH).max(took * RENDERING_PAUSE_FACTOR_MIN)
}

impl<K> Shared<K> {
    /// Renders when there is a permit, and records the duration; nothing if all readers have disconnected meanwhile.
    async fn render(
        &self,
        writer: DocumentWriter,
        render: impl FnOnce(DocumentWriter) + Send + 'static,
    ) -> Option<(Arc<Rendition>, Duration)> {
        let _permit = self.permit().await;
        let writer = self.unless_abandoned(writer)?;
        let rendition = writer.rendition();
        writer.begin();
        let began = Instant::now();
        // The writer of a rendering that panics breaks its rendition, and the readers get an error.
        if let Err(err) = self.threads.run(move || render(writer)).await {
            tracing::error!(%err, "rendering failed");
        }
        Some((rendition, began.elapsed()))
    }

    async fn permit(&self) -> SemaphorePermit<'_> {
        self.permits.acquire().await.expect("the semaphore is never closed")
    }

    /// Under the lock, so that no reader shares a rendition that is given up at the same moment.
    fn unless_abandoned(&self, writer: DocumentWriter) -> Option<DocumentWriter> {
        let _table = self.lock();
        writer.is_read().then_some(writer)
    }

    fn lock(&self) -> MutexGuard<'_, Table<K>> {
        self.table.lock().expect("no code panics while it holds this lock")
    }
}

impl<K: Eq + Hash> Table<K> {
    /// Stores a new rendition, and drops those without readers.
    fn add(&mut self, rendition: &Arc<Rendition>) {
        self.held.retain(|one| one.strong_count() > 0);
        self.held.push_back(Arc::downgrade(rendition));
        let now = Instant::now();
        let pauses = |turn: &Turn| turn.try_lock().map_or(true, |until| until.is_some_and(|at| at > now));
        self.newest.retain(|_, newest| newest.rendition.strong_count() > 0 || pauses(&newest.turn));
        self.limit();
    }

    fn keep(&mut self, key: K, rendition: Arc<Rendition>) {
        self.kept.retain(|(kept, _)| *kept != key);
        if rendition.is_versioned() && rendition.bytes() <= RENDITION_KEPT_BYTES_MAX {
            self.kept.push_back((key, rendition));
        }
        if self.kept.len() > RENDITIONS_KEPT_MAX {
            self.kept.pop_front();
        }
    }

    /// Disconnects readers of the oldest renditions while there is too much in memory.
    fn limit(&mut self) {
        let complete = self.held.iter().filter_map(Weak::upgrade).filter(|one| one.is_over());
        let complete: Vec<Arc<Rendition>> = complete.collect();
        let mut bytes: usize = complete.iter().map(|one| one.bytes()).sum();
        let Some((_newest, older)) = complete.split_last() else { return };
        for oldest in older {
            if bytes <= self.bytes_max {
                return;
            }
            let freed = oldest.cut_off();
            bytes -= freed;
            tracing::warn!(
                bytes = freed,
                limit_bytes = self.bytes_max,
                "readers of an old rendering disconnected"
            );
        }
    }
}

impl<K: Eq + Hash + Clone + Send + 'static> Default for Renderings<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for Renderings<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), runtime: self.runtime.clone() }
    }
}

impl<K> std::fmt::Debug for Renderings<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Renderings")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Writes its version and counts itself.
    fn render(version: u64, rendered: &Arc<AtomicU64>) -> impl FnOnce(DocumentWriter) + Send + 'static {
        let rendered = rendered.clone();
        move |mut writer: DocumentWriter| {
            rendered.fetch_add(1, Ordering::Relaxed);
            writer.set_version(version);
            writer.write(version.to_string().into_bytes());
            writer.finish();
        }
    }

    /// The same, but reports when it begins and waits for a permit to continue.
    fn held(
        version: u64,
        begun: Sender<u64>,
        go: Receiver<()>,
    ) -> impl FnOnce(DocumentWriter) + Send + 'static {
        move |writer: DocumentWriter| {
            begun.send(version).unwrap();
            go.recv().unwrap();
            render(version, &Arc::default())(writer);
        }
    }

    #[tokio::test]
    async fn the_same_request_is_rendered_once() {
        let (renderings, rendered) = (Renderings::new(), Arc::new(AtomicU64::new(0)));
        for _ in 0..10 {
            let rendition = renderings.get("state", 3, false, render(3, &rendered));
            assert_eq!(rendition.whole().await.unwrap(), "3");
        }
        assert_eq!((rendered.load(Ordering::Relaxed), renderings.hits()), (1, 9));
        for (key, arrived, newest, expected) in [
            ("state", 4, 5, "5"),
            ("state", 4, 6, "5"),
            ("tasks", 4, 6, "6"),
            ("first version", 0, 0, "0"),
            ("first version", 0, 1, "0"),
        ] {
            let rendition = renderings.get(key, arrived, false, render(newest, &rendered));
            assert_eq!(rendition.whole().await.unwrap(), expected, "{key} {arrived}");
        }
        let unversioned = || renderings.get("metrics", UNVERSIONED, false, render(7, &rendered));
        let (a, b) = (unversioned(), unversioned());
        assert!(Arc::ptr_eq(&a, &b), "neither has begun");
        a.over().await;
        assert!(!Arc::ptr_eq(&a, &unversioned()));
        assert_eq!(renderings.alone(false, render(9, &rendered)).whole().await.unwrap(), "9");
    }

    #[test]
    fn pause_after_a_rendering_bounds_its_cpu_share() {
        for (took_ms, pause_ms) in
            [(0, 0), (1, 19), (50, 950), (60, 1000), (300, 1000), (500, 1500), (4000, 12_000)]
        {
            assert_eq!(
                pause(Duration::from_millis(took_ms)),
                Duration::from_millis(pause_ms),
                "{took_ms} ms"
            );
        }
    }

    /// What was requested while an older rendering was in progress shares the next; there are never more at a time than
    /// permitted, and nothing is rendered for readers that left.
    #[tokio::test]
    async fn concurrent_renderings_are_limited_and_shared() {
        let renderings = Renderings::with_limits(NonZero::<usize>::MIN, usize::MAX);
        let ((begun, begins), (go, may_go)) = (channel(), channel());
        let first = renderings.get("state", 2, false, held(2, begun.clone(), may_go));
        let begins = tokio::task::spawn_blocking(move || (begins.recv().unwrap(), begins)).await.unwrap();
        assert_eq!(begins.0, 2);
        let rendered = Arc::new(AtomicU64::new(0));
        let next = || renderings.get("state", 3, false, render(3, &rendered));
        let (a, b) = (next(), next());
        assert!(Arc::ptr_eq(&a, &b) && !Arc::ptr_eq(&a, &first));
        let other = renderings.alone(false, render(8, &rendered));
        drop(renderings.alone(false, render(9, &rendered)));
        assert_eq!((first.is_over(), other.is_over(), rendered.load(Ordering::Relaxed)), (false, false, 0));
        go.send(()).unwrap();
        a.over().await;
        other.over().await;
        assert_eq!((first.version(), a.version(), rendered.load(Ordering::Relaxed)), (2, 3, 2));
    }

    #[tokio::test]
    async fn readers_of_the_oldest_rendition_are_disconnected_when_memory_is_full() {
        let renderings: Renderings<()> = Renderings::with_limits(NonZero::<usize>::MIN, 10);
        let six = || {
            renderings.alone(false, |mut writer: DocumentWriter| {
                (writer.write(b"sixsix".to_vec()), writer.finish()).1
            })
        };
        let (oldest, old) = (six(), six());
        old.over().await;
        let new = six();
        new.over().await;
        assert_eq!([&oldest, &old, &new].map(|one| one.is_broken()), [true, false, false]);
        assert_eq!(oldest.whole().await.unwrap_err().status, 500);
        assert_eq!(old.whole().await.unwrap(), "sixsix");
        drop(old);
        drop(oldest);
        six().over().await;
        assert!(!new.is_broken());
    }
}
