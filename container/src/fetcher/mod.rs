//! The fetcher: downloads the files of a command into its sandbox before the command starts.
//!
//! The agent's side is here (`uri` parses requests, `cache` keeps files); the files themselves are touched by a
//! helper, `job`, that runs as the container's user: a URI can read and write no more than its command could. Absent:
//! execution of the command.

mod budget;
mod cache;
pub(crate) mod download;
mod extract;
pub(crate) mod fault;
pub(crate) mod job;
mod uri;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tepui_proto::mesos::v1::command_info::URI;
use tepui_types::LaunchSpec;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::Semaphore;

use self::budget::Budget;
use self::cache::{Cache, CachedFile, Refusal};
use self::fault::FetchFault;
use self::job::{Item, Job, Outcome, Source, Work};
use self::uri::Wanted;
use crate::host::beneath;
use crate::host::user::Identity;

/// How many containers may be fetching at once; others wait their turn.
const FETCHES_AT_ONCE_MAX: usize = 64;

/// The part of the agent's environment that a helper inherits: locations of tools and certificates.
const ENVIRONMENT: [&str; 3] = ["PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// How files are fetched, as an operator chose.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub program: PathBuf,
    pub work_dir: PathBuf,
    pub stall_timeout: Duration,
    /// What the sandbox of a container without `disk` may hold once everything is fetched.
    pub sandbox_bytes_max: u64,
    pub frameworks_home: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Fetcher {
    settings: Settings,
    cache: Arc<Cache>,
    turns: Semaphore,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// What the fetcher did so far, and how full its cache is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetcherCounts {
    pub succeeded: u64,
    pub failed: u64,
    pub cache_total_bytes: u64,
    pub cache_used_bytes: u64,
}

impl Fetcher {
    /// Files cached by an earlier agent are dropped: they may be incomplete.
    pub fn new(settings: Settings, cache_dir: &Path, cache_bytes_max: u64) -> io::Result<Fetcher> {
        let cache = Arc::new(Cache::empty(cache_dir, cache_bytes_max)?);
        let turns = Semaphore::new(FETCHES_AT_ONCE_MAX);
        Ok(Fetcher { settings, cache, turns, succeeded: AtomicU64::new(0), failed: AtomicU64::new(0) })
    }

    pub fn counts(&self) -> FetcherCounts {
        let (cache_used_bytes, cache_total_bytes) = self.cache.size();
        FetcherCounts {
            succeeded: self.succeeded.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            cache_total_bytes,
            cache_used_bytes,
        }
    }

    /// Fetches all files, in order, or reports the first failure. Can be dropped at any point.
    pub async fn fetch(&self, spec: &LaunchSpec, identity: Option<&Identity>) -> Result<(), FetchFault> {
        let (uris, sandbox) = (&spec.command.uris, spec.sandbox.as_str());
        if uris.is_empty() {
            self.succeeded.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let _turn = self.turns.acquire().await;
        let fetched = self.try_fetch(uris, spec, identity).await;
        if let Err(fault) = &fetched {
            self.log(sandbox, fault);
        }
        let outcome = if fetched.is_ok() { &self.succeeded } else { &self.failed };
        outcome.fetch_add(1, Ordering::Relaxed);
        fetched
    }

    async fn try_fetch(
        &self,
        uris: &[URI],
        spec: &LaunchSpec,
        identity: Option<&Identity>,
    ) -> Result<(), FetchFault> {
        let checked = |uri: &URI| {
            let fail = |fault| FetchFault::Uri { uri: uri.value.clone(), fault };
            uri::check(uri, self.settings.frameworks_home.as_deref()).map_err(fail)
        };
        let plan = uris.iter().map(checked).collect::<Result<Vec<Wanted>, FetchFault>>()?;
        let (mut items, mut held) = (Vec::new(), Vec::new());
        for wanted in plan {
            let cached = if wanted.cache { self.cached(&wanted, identity).await? } else { None };
            let source = cached.as_ref().map_or(wanted.source, |file| Source::Cached(file.path().to_owned()));
            held.extend(cached); // Not evicted before it is copied.
            items.push(Item { source, ..wanted.item });
        }
        let rest = beneath::relative(&self.settings.work_dir, Path::new(&spec.sandbox));
        let sandbox = rest.ok_or(FetchFault::SandboxOutside)?;
        let budget = Budget::new(&spec.resources, self.settings.sandbox_bytes_max);
        let (work_dir, sandbox_dir) = (self.settings.work_dir.clone(), sandbox.to_owned());
        let work = Work::Place { work_dir, sandbox: sandbox_dir, items, budget };
        let stderr = self.stderr(sandbox).map_or_else(|_| Stdio::null(), Stdio::from);
        match self.run(work, identity, stderr).await {
            Outcome::Done { .. } => Ok(()),
            Outcome::TooLarge => Err(FetchFault::WrongAnswer),
            Outcome::Failed { message } => Err(FetchFault::Helper(message)),
        }
    }

    /// The file in the cache, brought there if needed; `None` if the cache cannot take it.
    async fn cached(
        &self,
        wanted: &Wanted,
        identity: Option<&Identity>,
    ) -> Result<Option<Arc<CachedFile>>, FetchFault> {
        let owner = identity.map(|identity| (identity.uid, identity.gid));
        let (source, uri) = (wanted.source.clone(), wanted.item.uri.clone());
        let (settings, user) = (self.settings.clone(), identity.cloned());
        let download = move |to: PathBuf, bytes_max: u64| async move {
            let work = Work::Download { uri, source, to, bytes_max };
            run(&settings, work, user.as_ref(), Stdio::null()).await
        };
        match self.cache.get(owner, &wanted.item.uri, &wanted.item.name, download).await {
            Ok(file) => Ok(Some(file)),
            Err(Refusal::TooLarge) => Ok(None),
            Err(Refusal::Failed(message)) => Err(FetchFault::Helper(message)),
        }
    }

    async fn run(&self, work: Work, identity: Option<&Identity>, stderr: Stdio) -> Outcome {
        run(&self.settings, work, identity, stderr).await
    }

    /// Users look into their sandbox first.
    fn log(&self, sandbox: &str, fault: &FetchFault) {
        let rest = beneath::relative(&self.settings.work_dir, Path::new(sandbox));
        if let Some(Ok(mut stderr)) = rest.map(|rest| self.stderr(rest)) {
            io::Write::write_all(&mut stderr, format!("{fault}\n").as_bytes()).ok(); // The event contains the error as well.
        }
    }

    fn stderr(&self, sandbox: &Path) -> io::Result<std::fs::File> {
        let dir: OwnedFd = beneath::open_dir(&self.settings.work_dir, sandbox)?;
        beneath::open_to_append(&dir, "stderr", 0o644)
    }
}

/// A running helper with whatever it started; dropped before its end, it is killed.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        // No id: it was reaped. It leads a group of its own.
        if let Some(pid) = self.0.id() {
            let group = nix::unistd::Pid::from_raw(pid.cast_signed());
            nix::sys::signal::killpg(group, nix::sys::signal::SIGKILL).ok();
        }
    }
}

/// Has a helper do some work.
async fn run(settings: &Settings, work: Work, identity: Option<&Identity>, stderr: Stdio) -> Outcome {
    let job = Job { identity: identity.cloned(), stall_timeout: settings.stall_timeout, work };
    match converse(settings, &job, stderr).await {
        Ok(outcome) => outcome,
        Err(err) => Outcome::Failed { message: format!("the fetcher did not finish: {err}") },
    }
}

async fn converse(settings: &Settings, job: &Job, stderr: Stdio) -> io::Result<Outcome> {
    let known = ENVIRONMENT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let child = tokio::process::Command::new(&settings.program)
        .args([crate::HELPER_COMMAND, crate::FETCH])
        .env_clear()
        .envs(known)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .process_group(0)
        .spawn()?;
    let mut helper = Helper(child);
    let (Some(mut stdin), Some(mut stdout)) = (helper.0.stdin.take(), helper.0.stdout.take()) else {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe));
    };
    let mut text = serde_json::to_vec(job)?;
    text.push(b'\n');
    stdin.write_all(&text).await?;
    let mut answer = Vec::new();
    stdout.read_to_end(&mut answer).await?;
    drop(stdin); // Open until here: a helper exits when its agent does.
    helper.0.wait().await?;
    Ok(serde_json::from_slice(&answer)?)
}
