//! Faults of the disk and of etcd. Every fault of a file names the file.

use std::path::{Path, PathBuf};

use redb::StorageError;

#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    #[error("cannot open {path}: another process is using it")]
    Locked { path: PathBuf },
    #[error(
        "{path} is damaged: {what}; restore it from a backup, or move it away to start with an empty one"
    )]
    Corrupt { path: PathBuf, what: String },
    #[error("{path} was written by another version: its format is {found}, this program reads {expected}")]
    Format { path: PathBuf, found: u64, expected: u64 },
    #[error("cannot write to {path}: no space left on the disk")]
    DiskFull { path: PathBuf },
    #[error("cannot {doing} {path}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
    #[error("etcd is not available: {what}")]
    Unavailable { what: String },
    #[error("another master leads now")]
    Deposed,
    #[error("etcd cannot be used: {what}")]
    Etcd { what: String },
    #[error("cannot {doing} {path}: {what}")]
    Engine { doing: &'static str, path: PathBuf, what: String },
}

impl StoreFault {
    /// Whether the same writes may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreFault::DiskFull { .. } | StoreFault::Unavailable { .. })
    }

    pub(crate) fn io(doing: &'static str, path: &Path, err: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.to_path_buf();
        match err.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreFault::DiskFull { path },
            // The engine reads past the end of a file that is shorter than its header says.
            ErrorKind::UnexpectedEof => StoreFault::Corrupt { path, what: "it is truncated".into() },
            // The engine's word for a file that does not begin as its files do.
            ErrorKind::InvalidData => StoreFault::Corrupt { path, what: err.to_string() },
            _ => StoreFault::Io { doing, path, err },
        }
    }

    pub(crate) fn engine(doing: &'static str, path: &Path, err: impl Into<redb::Error>) -> Self {
        match err.into() {
            redb::Error::DatabaseAlreadyOpen => StoreFault::Locked { path: path.to_path_buf() },
            redb::Error::Corrupted(what) => StoreFault::Corrupt { path: path.to_path_buf(), what },
            redb::Error::UpgradeRequired(found) => StoreFault::Corrupt {
                path: path.to_path_buf(),
                what: format!("its file format {found} is unknown"),
            },
            redb::Error::Io(err) => StoreFault::io(doing, path, err),
            other => StoreFault::Engine { doing, path: path.to_path_buf(), what: other.to_string() },
        }
    }

    pub(crate) fn storage(doing: &'static str, path: &Path, err: StorageError) -> Self {
        StoreFault::engine(doing, path, err)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn full_disk_is_reported_as_disk_full() {
        let err = redb::Error::Io(Error::from(ErrorKind::StorageFull));
        let fault = StoreFault::engine("write to", Path::new("/w/registry.redb"), err);
        assert_eq!(fault.to_string(), "cannot write to /w/registry.redb: no space left on the disk");
    }
}
