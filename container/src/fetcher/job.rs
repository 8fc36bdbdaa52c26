//! The fetcher's helper: our own program, started again as the user of the sandbox.
//!
//! Reads its job from one line on standard input, answers on standard output, and exits when standard input closes,
//! because then the agent has exited.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Gid;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::fault::Fault;
use super::{download, extract};
use crate::host::beneath;
use crate::host::user::Identity;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    /// The user to become first.
    pub identity: Option<Identity>,
    pub stall_timeout: Duration,
    pub work: Work,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Work {
    /// Brings one file into the cache.
    Download { uri: String, source: Source, to: PathBuf, bytes_max: u64 },
    /// Brings files into a sandbox, in order.
    Place { work_dir: PathBuf, sandbox: PathBuf, items: Vec<Item>, budget: Budget },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    /// As the framework wrote it; for messages.
    pub uri: String,
    pub source: Source,
    /// Where it goes in the sandbox.
    pub name: String,
    pub executable: bool,
    pub extract: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Source {
    Local(PathBuf),
    Http(String),
    /// A file in the cache; an archive is unpacked from there and not copied.
    Cached(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    Done {
        bytes: u64,
    },
    /// Only for a download into the cache.
    TooLarge,
    Failed {
        message: String,
    },
}

/// Does one job. Must be the first thing the process does.
pub(crate) fn work() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let job: Job = serde_json::from_str(&line)?;
    if let Some(identity) = &job.identity {
        let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
        identity.assume_with(&groups)?;
    }
    std::thread::spawn(|| {
        io::stdin().read_to_end(&mut Vec::new()).ok();
        std::process::exit(1); // No reader is left.
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(run(&job));
    io::stdout().write_all(&serde_json::to_vec(&outcome)?)
}

async fn run(job: &Job) -> Outcome {
    let failed = |uri: &str, fault: Fault| match fault {
        Fault::TooLarge => Outcome::TooLarge,
        fault => Outcome::Failed { message: format!("Failed to fetch '{uri}': {fault}") },
    };
    match &job.work {
        Work::Download { uri, source, to, bytes_max } => {
            match bring(source, to, *bytes_max, job.stall_timeout).await {
                Ok(bytes) => Outcome::Done { bytes },
                Err(fault) => failed(uri, fault),
            }
        }
        Work::Place { work_dir, sandbox, items, budget } => {
            let mut total = 0;
            for item in items {
                match place((work_dir, sandbox), item, *budget, job.stall_timeout).await {
                    Ok(bytes) => total += bytes,
                    Err(fault) => return failed(&item.uri, fault),
                }
            }
            Outcome::Done { bytes: total }
        }
    }
}

/// Brings one file into the sandbox, makes it executable or unpacks it.
async fn place(
    (work_dir, sandbox): (&Path, &Path),
    item: &Item,
    budget: Budget,
    stall: Duration,
) -> Result<u64, Fault> {
    let dir = beneath::open_dir(work_dir, sandbox).map_err(Fault::io("cannot open the sandbox"))?;
    nix::unistd::fchdir(&dir).map_err(|err| Fault::io("cannot enter the sandbox")(err.into()))?;
    budget.limit_files().map_err(Fault::io("cannot limit the size of files"))?;
    let to = Path::new(&item.name);
    let archive = extract::kind(&item.name).filter(|_| item.extract);
    if let (Source::Cached(file), Some(kind)) = (&item.source, archive) {
        extract::extract(kind, file, to, budget).await?;
        return Ok(0);
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(Fault::io(format!("cannot make '{}'", parent.display())))?;
    }
    let bytes = bring(&item.source, to, budget.left(), stall).await.map_err(|fault| match fault {
        Fault::TooLarge => budget.fault(),
        other => other,
    })?;
    if item.executable {
        let mode = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(to, mode)
            .map_err(Fault::io(format!("cannot make '{}' executable", item.name)))?;
    }
    if let Some(kind) = archive {
        extract::extract(kind, to, to, budget).await?;
    }
    Ok(bytes)
}

/// Brings the bytes to a path; returns how many.
async fn bring(source: &Source, to: &Path, bytes_max: u64, stall: Duration) -> Result<u64, Fault> {
    match source {
        Source::Http(url) => download::download(url, to, Some(bytes_max), stall).await,
        Source::Local(from) | Source::Cached(from) => copy(from, to, bytes_max),
    }
}

fn copy(from: &Path, to: &Path, bytes_max: u64) -> Result<u64, Fault> {
    let meta = std::fs::metadata(from).map_err(Fault::io(format!("cannot read '{}'", from.display())))?;
    if !meta.is_file() {
        return Err(Fault::NotFile(from.to_owned()));
    }
    if meta.len() > bytes_max {
        return Err(Fault::TooLarge);
    }
    std::fs::copy(from, to).map_err(Fault::io(format!("cannot copy '{}'", from.display())))
}
