//! The embedded store: one database file, nothing to install.
//!
//! Owns the file and its lock. Every commit is a two-phase one: after a crash the engine then takes the newest commit or
//! reports damage; it never falls back to an older commit, which would lose acknowledged writes. The file carries the
//! number of its format, so that a later version can refuse or convert it instead of misreading it.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use tepui_fsm::Write;

use crate::StoreFault;

/// The format of the file as a whole; what the values mean has versions of its own.
const FORMAT: u64 = 1;

const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");

/// Records in one file.
#[derive(Debug)]
pub struct Embedded {
    /// None only after reopening failed.
    database: Option<Database>,
    path: PathBuf,
}

impl Embedded {
    /// Opens or makes the file and checks every page of it.
    pub fn open(path: &Path) -> Result<Self, StoreFault> {
        let database = guarded(path, || open_database(path))?;
        let store = Self { database: Some(database), path: path.to_path_buf() };
        guarded(path, || store.check_format())?;
        Ok(store)
    }

    /// Closes the file and opens it as after a crash: with what the last successful commit left, or all of a later one.
    pub fn reopen(&mut self) -> Result<(), StoreFault> {
        self.database = None;
        *self = Self::open(&self.path)?;
        Ok(())
    }

    fn database(&self) -> Result<&Database, StoreFault> {
        let closed =
            || StoreFault::Engine { doing: "use", path: self.path.clone(), what: "it is closed".into() };
        self.database.as_ref().ok_or_else(closed)
    }

    pub fn load(&self) -> Result<Vec<(String, Vec<u8>)>, StoreFault> {
        guarded(&self.path, || {
            let fault = |err: redb::Error| StoreFault::engine("read", &self.path, err);
            let read = self.database()?.begin_read().map_err(|err| fault(err.into()))?;
            let table = read.open_table(RECORDS).map_err(|err| fault(err.into()))?;
            let mut all = Vec::new();
            for entry in table.iter().map_err(|err| fault(err.into()))? {
                let (key, value) = entry.map_err(|err| fault(err.into()))?;
                all.push((key.value().to_owned(), value.value().to_owned()));
            }
            Ok(all)
        })
    }

    pub fn commit(&mut self, writes: &[Write]) -> Result<(), StoreFault> {
        let fault = |err: redb::Error| StoreFault::engine("write to", &self.path, err);
        let transaction = self.begin_write("write to")?;
        {
            let mut table = transaction.open_table(RECORDS).map_err(|err| fault(err.into()))?;
            for write in writes {
                let done = match &write.value {
                    Some(value) => table.insert(write.key.as_str(), value.as_slice()),
                    None => table.remove(write.key.as_str()),
                };
                done.map_err(|err| StoreFault::storage("write to", &self.path, err))?;
            }
        }
        // The engine's default durability: the commit is on disk when this returns.
        transaction.commit().map_err(|err| fault(err.into()))
    }

    fn begin_write(&self, doing: &'static str) -> Result<WriteTransaction, StoreFault> {
        let begun = self.database()?.begin_write();
        let mut transaction = begun.map_err(|err| StoreFault::engine(doing, &self.path, err))?;
        transaction.set_two_phase_commit(true);
        Ok(transaction)
    }

    /// Writes the format's number into a new file; refuses a file of another format.
    fn check_format(&self) -> Result<(), StoreFault> {
        let fault = |err: redb::Error| StoreFault::engine("prepare", &self.path, err);
        let transaction = self.begin_write("prepare")?;
        let found = mark_format(&transaction).map_err(fault)?;
        if found != FORMAT {
            return Err(StoreFault::Format { path: self.path.clone(), found, expected: FORMAT });
        }
        transaction.commit().map_err(|err| fault(err.into()))
    }
}

/// Opens the file, which is made first if there is none, and checks it.
fn open_database(path: &Path) -> Result<Database, StoreFault> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() == 0 => {
            return Err(StoreFault::Corrupt { path: path.to_path_buf(), what: "it is empty".into() });
        }
        Ok(_) => (),
        Err(err) if err.kind() == ErrorKind::NotFound => create(path)?,
        Err(err) => return Err(StoreFault::io("open", path, err)),
    }
    let mut database = Database::open(path).map_err(|err| StoreFault::engine("open", path, err))?;
    match database.check_integrity() {
        Ok(true) => (),
        Ok(false) => {
            return Err(StoreFault::Corrupt {
                path: path.to_path_buf(),
                what: "its checksums do not match".into(),
            });
        }
        Err(err) => return Err(StoreFault::engine("check", path, err)),
    }
    Ok(database)
}

/// Makes a new file under another name first: a crash in between leaves no file that looks damaged.
fn create(path: &Path) -> Result<(), StoreFault> {
    let mut draft = OsString::from(path);
    draft.push(".draft");
    let draft = PathBuf::from(draft);
    match std::fs::remove_file(&draft) {
        Err(err) if err.kind() != ErrorKind::NotFound => return Err(StoreFault::io("remove", &draft, err)),
        Ok(()) | Err(_) => (),
    }
    drop(Database::create(&draft).map_err(|err| StoreFault::engine("create", &draft, err))?);
    std::fs::rename(&draft, path).map_err(|err| StoreFault::io("create", path, err))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|dir| dir.sync_all()).map_err(|err| StoreFault::io("sync", parent, err))
}

/// The number of the file's format; made ours if the file is new.
fn mark_format(transaction: &WriteTransaction) -> Result<u64, redb::Error> {
    let mut meta = transaction.open_table(META)?;
    let found = meta.get("format")?.map(|value| value.value());
    transaction.open_table(RECORDS)?;
    match found {
        Some(found) => Ok(found),
        None => {
            meta.insert("format", FORMAT)?;
            Ok(FORMAT)
        }
    }
}

/// The engine asserts about the content of files, so a damaged one can make it panic. To us that is a damaged file.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreFault>) -> Result<T, StoreFault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = match panic.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => panic.downcast_ref::<&str>().copied().unwrap_or("its content makes no sense").to_owned(),
        };
        Err(StoreFault::Corrupt { path: path.to_path_buf(), what })
    })
}

#[cfg(test)]
mod tests;
