//! The cache: files fetched before, each once for each user, the least recently used dropped first.
//!
//! Concurrent requests for a file share one download, which continues as long as a request waits for it. A file in
//! use is never dropped. The lock is never held while waiting.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::job::Outcome;

/// A longer name keeps its first and last so many characters.
const NAME_CHARS_MAX: usize = 20;

/// Files are separated by user and group, or are the agent's own.
pub(super) type Owner = Option<(u32, u32)>;

type Key = (Owner, String);
type Answer = Result<Arc<CachedFile>, Refusal>;

/// A cached file. It is deleted when the cache and all users have dropped it.
#[derive(Debug)]
pub(super) struct CachedFile {
    path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It would never fit; fetch it without the cache.
    TooLarge,
    Failed(String),
}

#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: BTreeMap<Key, Slot>,
    bytes: u64,
    /// Counts uses, so that the oldest is known, and names files.
    clock: u64,
}

#[derive(Debug)]
enum Slot {
    Downloading(Arc<watch::Sender<Option<Answer>>>),
    Ready { file: Arc<CachedFile>, bytes: u64, used: u64 },
}

impl CachedFile {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.path) {
            Ok(()) => (),
            Err(err) if err.kind() == io::ErrorKind::NotFound => (), // A download that never began.
            Err(err) => tracing::warn!(path = %self.path.display(), %err, "cannot remove a cached file"),
        }
    }
}

impl Cache {
    /// Takes `<dir>/cache` for itself and empties it.
    pub fn empty(dir: &Path, bytes_max: u64) -> io::Result<Cache> {
        let dir = dir.join("cache");
        match std::fs::remove_dir_all(&dir) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            Ok(()) | Err(_) => (),
        }
        // Each user's part can be entered by that user, and listed by none.
        DirBuilder::new().recursive(true).mode(0o711).create(&dir)?;
        Ok(Cache { dir, bytes_max, state: Mutex::default() })
    }

    /// The file for a URI; `download` brings it to a path, with no more than so many bytes.
    pub async fn get<F>(
        self: &Arc<Self>,
        owner: Owner,
        uri: &str,
        name: &str,
        download: impl FnOnce(PathBuf, u64) -> F,
    ) -> Answer
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let key = (owner, uri.to_owned());
        let mut waiter = match self.lookup(&key, name) {
            Looked::There(file) => return Ok(file),
            Looked::Coming(waiter) => waiter,
            Looked::Missing { path, sender, waiter } => {
                let path =
                    path.map_err(|err| Refusal::Failed(format!("cannot use the fetcher's cache: {err}")));
                let file = path.map(|path| Arc::new(CachedFile { path }));
                let work = file.as_ref().ok().map(|file| download(file.path.clone(), self.bytes_max));
                // Its failure is the result of all waiting requests.
                tokio::spawn(self.clone().fill(key, sender, file, work));
                waiter
            }
        };
        let answer = match waiter.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone(),
            Err(_) => None,
        };
        answer.unwrap_or_else(|| Err(aborted()))
    }

    /// How many bytes it holds, and how many it may.
    pub fn size(&self) -> (u64, u64) {
        (self.lock().bytes, self.bytes_max)
    }

    fn lookup(&self, key: &Key, name: &str) -> Looked {
        let mut state = self.lock();
        state.clock += 1;
        let clock = state.clock;
        match state.slots.get_mut(key) {
            Some(Slot::Ready { file, used, .. }) => {
                *used = clock;
                Looked::There(file.clone())
            }
            Some(Slot::Downloading(sender)) => Looked::Coming(sender.subscribe()),
            None => {
                let (sender, waiter) = watch::channel(None);
                let sender = Arc::new(sender);
                state.slots.insert(key.clone(), Slot::Downloading(sender.clone()));
                Looked::Missing { path: self.place(key.0, clock, name), sender, waiter }
            }
        }
    }

    /// Each owner has a directory that only they can write to.
    fn place(&self, owner: Owner, number: u64, name: &str) -> io::Result<PathBuf> {
        let dir = self.dir.join(owner.map_or_else(|| String::from("own"), |(uid, _)| uid.to_string()));
        match DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => (),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => (),
            Err(err) => return Err(err),
        }
        if let Some((uid, gid)) = owner {
            std::os::unix::fs::chown(&dir, Some(uid), Some(gid))?;
        }
        Ok(dir.join(format!("c{number}-{}", shorten(name))))
    }

    /// Downloads for all waiting requests, and stops when none is left.
    async fn fill<F: Future<Output = Outcome>>(
        self: Arc<Self>,
        key: Key,
        sender: Arc<watch::Sender<Option<Answer>>>,
        file: Result<Arc<CachedFile>, Refusal>,
        work: Option<F>,
    ) {
        let filling = Filling { cache: self, key, sender };
        let outcome = async {
            match (file, work) {
                (Ok(file), Some(work)) => match work.await {
                    Outcome::Done { bytes } => Ok((file, bytes)),
                    Outcome::TooLarge => Err(Refusal::TooLarge),
                    Outcome::Failed { message } => Err(Refusal::Failed(message)),
                },
                (Err(refusal), _) => Err(refusal),
                (Ok(_), None) => Err(aborted()),
            }
        };
        tokio::select! {
            outcome = outcome => filling.cache.settle(&filling.key, &filling.sender, outcome),
            () = filling.cache.abandoned(&filling.key, &filling.sender) => (),
        }
    }

    fn settle(
        &self,
        key: &Key,
        sender: &watch::Sender<Option<Answer>>,
        outcome: Result<(Arc<CachedFile>, u64), Refusal>,
    ) {
        let mut state = self.lock();
        state.slots.remove(key);
        let answer = outcome.map(|(file, bytes)| {
            state.admit(key.clone(), file.clone(), bytes, self.bytes_max);
            file
        });
        sender.send_replace(Some(answer));
    }

    /// Waits until no request waits, and then accepts no new one.
    async fn abandoned(&self, key: &Key, sender: &watch::Sender<Option<Answer>>) {
        loop {
            sender.closed().await;
            let mut state = self.lock();
            if sender.receiver_count() == 0 {
                state.slots.remove(key);
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A download in progress. After a panic in it no request may wait for its slot.
struct Filling {
    cache: Arc<Cache>,
    key: Key,
    sender: Arc<watch::Sender<Option<Answer>>>,
}

impl Drop for Filling {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        if let Some(Slot::Downloading(sender)) = state.slots.get(&self.key)
            && Arc::ptr_eq(sender, &self.sender)
        {
            state.slots.remove(&self.key);
            self.sender.send_replace(Some(Err(aborted())));
        }
    }
}

fn aborted() -> Refusal {
    Refusal::Failed(String::from("the download was aborted"))
}

enum Looked {
    There(Arc<CachedFile>),
    Coming(watch::Receiver<Option<Answer>>),
    Missing {
        path: io::Result<PathBuf>,
        sender: Arc<watch::Sender<Option<Answer>>>,
        waiter: watch::Receiver<Option<Answer>>,
    },
}

impl State {
    /// Keeps a file if space can be made for it; otherwise it lives only as long as the current requests use it.
    fn admit(&mut self, key: Key, file: Arc<CachedFile>, bytes: u64, bytes_max: u64) {
        while self.bytes + bytes > bytes_max {
            if !self.evict() {
                return;
            }
        }
        self.clock += 1;
        self.bytes += bytes;
        self.slots.insert(key, Slot::Ready { file, bytes, used: self.clock });
    }

    /// Drops the least recently used file that is not in use. False if there is none.
    fn evict(&mut self) -> bool {
        let unused = |slot: &Slot| match slot {
            Slot::Ready { file, used, .. } if Arc::strong_count(file) == 1 => Some(*used),
            Slot::Ready { .. } | Slot::Downloading(_) => None,
        };
        let oldest = self.slots.iter().filter_map(|(key, slot)| Some((unused(slot)?, key))).min();
        let Some(key) = oldest.map(|(_, key)| key.clone()) else { return false };
        if let Some(Slot::Ready { bytes, .. }) = self.slots.remove(&key) {
            self.bytes -= bytes;
        }
        true
    }
}

/// A readable name of limited length.
fn shorten(name: &str) -> String {
    let base: Vec<char> = name.rsplit('/').next().unwrap_or_default().chars().collect();
    if base.len() <= NAME_CHARS_MAX {
        return base.into_iter().collect();
    }
    let half = NAME_CHARS_MAX / 2;
    let (first, last) = (&base[..half], &base[base.len() - half..]);
    format!("{}_{}", first.iter().collect::<String>(), last.iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kit {
        cache: Arc<Cache>,
        _dir: tempfile::TempDir,
    }

    impl Kit {
        fn new(bytes_max: u64) -> Kit {
            let dir = tempfile::tempdir().expect("a directory");
            Kit { cache: Arc::new(Cache::empty(dir.path(), bytes_max).expect("made")), _dir: dir }
        }

        /// Requests a file of so many bytes; true if it had to be downloaded.
        async fn get(&self, uri: &str, bytes: u64) -> (Answer, bool) {
            let downloaded = Arc::new(Mutex::new(false));
            let seen = downloaded.clone();
            let download = move |path: PathBuf, bytes_max: u64| async move {
                *seen.lock().expect("not poisoned") = true;
                std::fs::write(path, "x".repeat(bytes as usize)).expect("written");
                if bytes > bytes_max { Outcome::TooLarge } else { Outcome::Done { bytes } }
            };
            let answer = self.cache.get(None, uri, uri, download).await;
            let downloaded = *downloaded.lock().expect("not poisoned");
            (answer, downloaded)
        }

        async fn is_cached(&self, uri: &str, bytes: u64) -> bool {
            !self.get(uri, bytes).await.1
        }

        fn files(&self) -> usize {
            std::fs::read_dir(self.cache.dir.join("own")).map_or(0, Iterator::count)
        }
    }

    #[tokio::test]
    async fn least_recently_used_entry_is_evicted_first() {
        let kit = Kit::new(10);
        for uri in ["a", "b"] {
            assert!(!kit.is_cached(uri, 4).await);
        }
        assert!(kit.is_cached("a", 4).await);
        assert!(!kit.is_cached("c", 4).await);
        assert_eq!(kit.files(), 2);
        assert!(kit.is_cached("a", 4).await && kit.is_cached("c", 4).await);
        assert!(!kit.is_cached("b", 4).await);
    }

    #[tokio::test]
    async fn cache_entries_in_use_are_not_evicted() {
        let kit = Kit::new(10);
        let a = kit.get("a", 8).await.0.expect("fetched");
        let b = kit.get("b", 8).await.0.expect("fetched, but not kept");
        assert!(a.path().exists() && b.path().exists());
        drop(b);
        assert_eq!(kit.files(), 1);
        assert!(kit.is_cached("a", 8).await);
        drop(a);
        assert!(!kit.is_cached("b", 8).await);
        assert!(kit.is_cached("b", 8).await);
        assert_eq!(kit.files(), 1);
    }

    #[tokio::test]
    async fn file_larger_than_the_cache_is_rejected_and_removed() {
        let kit = Kit::new(10);
        assert_eq!(kit.get("a", 11).await.0.expect_err("too large"), Refusal::TooLarge);
        assert_eq!(kit.files(), 0);
    }

    #[tokio::test]
    async fn concurrent_requests_share_one_download_and_failures_are_not_cached() {
        let kit = Kit::new(10);
        let (go, gate) = tokio::sync::oneshot::channel::<()>();
        let failing = |path: PathBuf, _| async move {
            gate.await.ok();
            drop(path);
            Outcome::Failed { message: String::from("no") }
        };
        let never =
            |_: PathBuf, _: u64| async { Outcome::Failed { message: String::from("second download") } };
        let both = async {
            tokio::join!(
                kit.cache.get(None, "a", "a", failing),
                kit.cache.get(None, "a", "a", never),
                async { go.send(()).ok() }
            )
        };
        let (first, second, _) = both.await;
        assert_eq!(first.expect_err("failed"), Refusal::Failed(String::from("no")));
        assert_eq!(second.expect_err("failed"), Refusal::Failed(String::from("no")));
        assert!(!kit.is_cached("a", 1).await);
        assert!(kit.is_cached("a", 1).await);
    }

    #[tokio::test]
    async fn download_without_waiters_is_cancelled_and_restarted_on_request() {
        let kit = Kit::new(10);
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        let hanging = |_: PathBuf, _: u64| async move {
            let _held = held;
            std::future::pending::<Outcome>().await
        };
        {
            let waiting = kit.cache.get(None, "a", "a", hanging);
            tokio::pin!(waiting);
            assert!(futures_poll(waiting.as_mut()).await.is_none());
        }
        dropped.await.expect_err("the download was dropped");
        assert!(!kit.is_cached("a", 1).await);
    }

    #[tokio::test]
    async fn download_that_panics_fails_its_waiters_and_is_restarted_on_request() {
        let kit = Kit::new(10);
        let panicking = |_: PathBuf, _: u64| async { panic!("no such header") };
        let failed = kit.cache.get(None, "a", "a", panicking).await.expect_err("it panicked");
        assert_eq!(failed, aborted());
        assert!(!kit.is_cached("a", 1).await);
        assert!(kit.is_cached("a", 1).await);
    }

    /// Polls once, after letting other tasks run.
    async fn futures_poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = tokio::task::yield_now() => None,
        }
    }

    #[tokio::test]
    async fn users_do_not_share_cache_entries() {
        let kit = Kit::new(10);
        let download = |path: PathBuf, _| async move {
            std::fs::write(path, "x").expect("written");
            Outcome::Done { bytes: 1 }
        };
        let this = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        let ours = kit.cache.get(None, "a", "a", download).await.expect("fetched");
        let theirs = kit.cache.get(Some(this), "a", "a", download).await.expect("fetched");
        assert_ne!(ours.path(), theirs.path());
    }

    #[test]
    fn names_are_shortened() {
        assert_eq!(shorten("dir/short.tgz"), "short.tgz");
        assert_eq!(shorten("a-very-long-file-name-1.2.3.tar.gz"), "a-very-lon_2.3.tar.gz");
    }
}
