//! Directories outside of any container's life: old sandboxes to remove, persistent volumes to create and to destroy.
//!
//! Operations on one path are done in order, different paths concurrently. Each ends with one PathDone. Absent: the
//! choice of paths, which the agent makes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use tepui_types::ContainerEvent;
use tokio::sync::{Semaphore, watch};

use super::Context;
use crate::host::background::{Interrupted, blocking};
use crate::host::beneath;

/// Removing large trees loads a disk; more at once would not be faster.
const AT_ONCE_MAX: usize = 4;

pub(super) struct Paths {
    context: Arc<Context>,
    turns: Arc<Semaphore>,
    /// The last operation on each path; the channel closes when it is done.
    pending: BTreeMap<String, watch::Receiver<()>>,
}

impl Paths {
    pub fn new(context: &Arc<Context>) -> Paths {
        Paths {
            context: context.clone(),
            turns: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            pending: BTreeMap::new(),
        }
    }

    /// Removes a tree below the work directory.
    pub fn remove(&mut self, path: String) {
        self.spawn(path, |work_dir, path| {
            let outside = || io::Error::other("rejected: it is not below the work directory");
            beneath::remove_tree(work_dir, beneath::relative(work_dir, path).ok_or_else(outside)?)
        });
    }

    pub fn create_volume(&mut self, path: String) {
        self.spawn(path, |work_dir, path| {
            check_volume(work_dir, path)?;
            std::fs::create_dir_all(path)
        });
    }

    pub fn destroy_volume(&mut self, path: String) {
        self.spawn(path, |work_dir, path| {
            check_volume(work_dir, path)?;
            destroy_volume(path)
        });
    }

    /// What must be done before any of these paths can be used.
    pub fn pending<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Vec<watch::Receiver<()>> {
        paths.filter_map(|path| self.pending.get(path).cloned()).collect()
    }

    fn spawn(&mut self, path: String, work: fn(&Path, &Path) -> io::Result<()>) {
        self.pending.retain(|_, last| last.has_changed().is_ok());
        let (done, wait) = watch::channel(());
        let before = self.pending.insert(path.clone(), wait);
        let (context, turns) = (self.context.clone(), self.turns.clone());
        // Its failure is the error in PathDone.
        tokio::spawn(async move {
            if let Some(mut before) = before {
                while before.changed().await.is_ok() {}
            }
            let turn = turns.acquire().await;
            let (work_dir, at) = (context.options.work_dir.clone(), path.clone());
            let result = blocking(move || work(&work_dir, Path::new(&at))).await;
            drop((turn, done));
            let error = match result {
                Ok(Ok(())) => None,
                Ok(Err(err)) => Some(err.to_string()),
                Err(Interrupted::GoingDown) => return,
                Err(fault @ Interrupted::Panicked(_)) => Some(fault.to_string()),
            };
            context.emit(ContainerEvent::PathDone { path, error }).await;
        });
    }
}

/// Volumes of disks of their own are outside the work directory, so only what can never be one is refused.
fn check_volume(work_dir: &Path, path: &Path) -> io::Result<()> {
    let steps_up = path.components().any(|part| part == Component::ParentDir);
    match path.is_absolute() && !steps_up && !work_dir.starts_with(path) {
        true => Ok(()),
        false => Err(io::Error::other("rejected: it is not a valid volume directory")),
    }
}

/// A mount point loses its content and stays.
fn destroy_volume(path: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(err) => return Err(err),
    };
    for entry in entries {
        beneath::remove_tree(path, Path::new(&entry?.file_name()))?;
    }
    match std::fs::remove_dir(path) {
        Err(err) if err.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        removed => removed,
    }
}
