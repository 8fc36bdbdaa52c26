//! Paths in the containers of a pod: what is mounted on a path hides what is there.

use super::{Field, Reader};

const TEMPORARY_DIRECTORY: &str = "/tmp";

/// The tasks that have a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Pod,
    /// Those of one resource set, by its id.
    ResourceSet(String),
}

/// A path of the pod that is being read.
#[derive(Debug)]
pub(super) struct Mount {
    path: String,
    scope: Scope,
    at: usize,
    field: String,
}

impl Reader {
    /// Notes that a field mounts something on a path in containers.
    pub fn mount(&mut self, path: &str, scope: &Scope, field: &Field<'_>) {
        let (path, scope) = (normal(path), scope.clone());
        self.mounts.push(Mount { path, scope, at: field.at, field: field.path.clone() });
    }

    /// Rejects paths that two fields of a pod have. Those of two resource sets are in different containers.
    pub fn reject_mount_collisions(&mut self, has_image: bool) {
        let mounts = std::mem::take(&mut self.mounts);
        for (at, mount) in mounts.iter().enumerate() {
            let collides = |other: &&Mount| {
                let scopes = [&other.scope, &mount.scope];
                other.path == mount.path && (scopes.contains(&&Scope::Pod) || other.scope == mount.scope)
            };
            if let Some(other) = mounts[..at].iter().find(collides) {
                let message = format!("{} has the path {:?} in containers already", other.field, mount.path);
                self.error(mount.at, &mount.field, message);
            } else if has_image && mount.path == TEMPORARY_DIRECTORY {
                let message = format!("tasks of pods with `image` have a {TEMPORARY_DIRECTORY} of their own");
                self.error(mount.at, &mount.field, message);
            }
        }
    }
}

/// Whether a path names something below the directory that it is relative to.
pub fn is_below(path: &str) -> bool {
    !matches!(normal(path).as_str(), "" | "/")
}

fn normal(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
