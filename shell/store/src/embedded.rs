//! The embedded store: one database file.
//!
//! Owns the file and its lock. Every commit is a two-phase commit, and the [newest](crate::newest) one is selected before
//! the engine opens the file: it opens that commit or reports damage; it never falls back to an older one, which would lose
//! acknowledged writes. The file contains its format version, so that a later version can reject or convert it.
//!
//! While the disk is full, commits go into the [reserve](crate::reserve). The engine is closed after a failed write and
//! reopened before the next use.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use tepui_fsm::Write;

use crate::guarded::guarded;
use crate::newest::{open_checked, select_newest};
use crate::reserve::{Reserve, reserve_path};
use crate::{Headroom, Room, StoreFault, available_bytes};

/// The format of the file; the values have versions of their own.
const FORMAT: u64 = 1;

const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");

/// Records in one file.
#[derive(Debug)]
pub struct Embedded {
    /// None after a write failed, until it is opened again.
    database: Option<Database>,
    path: PathBuf,
    /// Distinguishes its reserve from that of another file.
    identity: u64,
    headroom: Headroom,
    /// `None` while there is no room for it, or if it is disabled and has no records.
    reserve: Option<Reserve>,
    /// Whether the disk was short when it was last looked at.
    is_short: bool,
}

impl Embedded {
    /// Opens or makes the file and checks every page of it.
    pub fn open(path: &Path, headroom: Headroom) -> Result<Self, StoreFault> {
        let (database, identity) = guarded(path, || open_database(path))?;
        let (database, path) = (Some(database), path.to_path_buf());
        let mut store = Self { database, path, identity, headroom, reserve: None, is_short: false };
        store.open_reserve()?;
        Ok(store)
    }

    /// Opens the reserve, or makes it as large as it should be. A full disk has no room for that: it is done later. A reserve
    /// that is disabled is opened if it has records of an earlier process.
    fn open_reserve(&mut self) -> Result<(), StoreFault> {
        let is_disabled = self.headroom.reserve_bytes == 0;
        if is_disabled && !reserve_path(&self.path).exists() {
            return Ok(());
        }
        self.reserve = None;
        match Reserve::open(&self.path, self.headroom.reserve_bytes, self.identity) {
            Ok(reserve) if is_disabled && reserve.is_empty() => (),
            Ok(reserve) => self.reserve = Some(reserve),
            Err(StoreFault::DiskFull { path }) => {
                tracing::warn!(path = %path.display(), "no disk space for the reserve of records");
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Closes and reopens the file as after a crash: with the last successful commit, or all of a later one. Commits in the
    /// reserve are applied to it.
    pub fn reopen(&mut self) -> Result<(), StoreFault> {
        self.database = None;
        let (database, _) = guarded(&self.path, || open_database(&self.path))?;
        self.database = Some(database);
        let Some(reserve) = self.reserve.as_ref().filter(|reserve| !reserve.is_empty()) else {
            return Ok(());
        };
        let pending = reserve.pending().iter();
        let writes: Vec<Write> =
            pending.map(|(key, value)| Write { key: key.clone(), value: value.clone() }).collect();
        self.write(&writes).inspect_err(|_| self.database = None)?;
        let cleared = self.reserve.as_mut().map_or(Ok(()), Reserve::clear);
        cleared.map_err(|err| StoreFault::io("clear the reserve of", &self.path, err))
    }

    /// Checks the disk; once it has room, commits in the reserve are applied to the file and the reserve is refilled.
    pub fn measure_room(&mut self) -> Result<Room, StoreFault> {
        // A file system that cannot be looked at is not known to be short.
        let available_bytes = available_bytes(&self.path).unwrap_or(u64::MAX);
        if available_bytes >= self.headroom.available_bytes_min {
            match self.restore() {
                // Not yet, after all.
                Ok(()) | Err(StoreFault::DiskFull { .. }) => (),
                Err(fault) => return Err(fault),
            }
        }
        let is_whole = self.database.is_some() && !self.uses_reserve() && self.is_reserve_large()?;
        self.is_short = self.headroom.is_short(self.is_short, available_bytes, is_whole);
        Ok(Room {
            is_short: self.is_short,
            available_bytes,
            reserve_bytes: self.reserve_capacity()?,
            reserve_used_bytes: self.reserve.as_ref().map_or(0, Reserve::used),
        })
    }

    fn restore(&mut self) -> Result<(), StoreFault> {
        if self.database.is_none() || self.uses_reserve() {
            self.reopen()?;
        }
        if self.is_reserve_large()? { Ok(()) } else { self.open_reserve() }
    }

    pub fn uses_reserve(&self) -> bool {
        self.reserve.as_ref().is_some_and(|reserve| !reserve.is_empty())
    }

    fn is_reserve_large(&self) -> Result<bool, StoreFault> {
        Ok(self.reserve_capacity()? >= self.headroom.reserve_bytes)
    }

    fn reserve_capacity(&self) -> Result<u64, StoreFault> {
        let Some(reserve) = &self.reserve else { return Ok(0) };
        reserve.capacity().map_err(|err| StoreFault::io("inspect the reserve of", &self.path, err))
    }

    fn database(&self) -> Result<&Database, StoreFault> {
        let closed =
            || StoreFault::Engine { doing: "use", path: self.path.clone(), what: "it is closed".into() };
        self.database.as_ref().ok_or_else(closed)
    }

    /// All records of the file and the reserve.
    pub fn load(&self) -> Result<Vec<(String, Vec<u8>)>, StoreFault> {
        let mut all = guarded(&self.path, || self.read())?;
        if let Some(reserve) = self.reserve.as_ref().filter(|reserve| !reserve.is_empty()) {
            for (key, value) in reserve.pending() {
                match value {
                    Some(value) => _ = all.insert(key.clone(), value.clone()),
                    None => _ = all.remove(key),
                }
            }
        }
        Ok(all.into_iter().collect())
    }

    fn read(&self) -> Result<BTreeMap<String, Vec<u8>>, StoreFault> {
        let fault = |err: redb::Error| StoreFault::engine("read", &self.path, err);
        let read = self.database()?.begin_read().map_err(|err| fault(err.into()))?;
        let table = read.open_table(RECORDS).map_err(|err| fault(err.into()))?;
        let mut all = BTreeMap::new();
        for entry in table.iter().map_err(|err| fault(err.into()))? {
            let (key, value) = entry.map_err(|err| fault(err.into()))?;
            all.insert(key.value().to_owned(), value.value().to_owned());
        }
        Ok(all)
    }

    /// Commits to the file, or to the reserve while the disk is full.
    pub fn commit(&mut self, writes: &[Write]) -> Result<(), StoreFault> {
        if self.database.is_some() && !self.uses_reserve() {
            match self.write(writes) {
                Err(StoreFault::DiskFull { .. }) => self.database = None,
                done => return done,
            }
        }
        let Some(reserve) = &mut self.reserve else {
            return Err(StoreFault::DiskFull { path: self.path.clone() });
        };
        reserve.append(writes).map_err(|err| StoreFault::io("write to the reserve of", &self.path, err))
    }

    fn write(&self, writes: &[Write]) -> Result<(), StoreFault> {
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
        begin_write(self.database()?, &self.path, doing)
    }
}

fn begin_write(
    database: &Database,
    path: &Path,
    doing: &'static str,
) -> Result<WriteTransaction, StoreFault> {
    let mut transaction = database.begin_write().map_err(|err| StoreFault::engine(doing, path, err))?;
    transaction.set_two_phase_commit(true);
    Ok(transaction)
}

/// Opens the file, creating it if missing, and validates it. Also returns its identity.
fn open_database(path: &Path) -> Result<(Database, u64), StoreFault> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() == 0 => {
            return Err(StoreFault::Corrupt { path: path.to_path_buf(), what: "it is empty".into() });
        }
        Ok(_) => (),
        Err(err) if err.kind() == ErrorKind::NotFound => create(path)?,
        Err(err) => return Err(StoreFault::io("open", path, err)),
    }
    let file =
        File::options().read(true).write(true).open(path).map_err(|err| StoreFault::io("open", path, err))?;
    match file.try_lock() {
        Ok(()) => (),
        Err(TryLockError::WouldBlock) => return Err(StoreFault::Locked { path: path.to_path_buf() }),
        Err(TryLockError::Error(err)) => return Err(StoreFault::io("lock", path, err)),
    }
    select_newest(&file, path)?;
    let backend = FileBackend::new(file).map_err(|err| StoreFault::engine("open", path, err))?;
    let database = open_checked(backend, path)?;
    let identity = prepare(&database, path)?;
    Ok((database, identity))
}

/// Marks a new file with its format and an identity; refuses a file of another format. A file that has both is not written
/// to: it can be opened on a full disk.
fn prepare(database: &Database, path: &Path) -> Result<u64, StoreFault> {
    let fault = |err: redb::Error| StoreFault::engine("prepare", path, err);
    let transaction = begin_write(database, path, "prepare")?;
    let (found, identity, is_new) = mark(&transaction).map_err(fault)?;
    if found != FORMAT {
        return Err(StoreFault::Format { path: path.to_path_buf(), found, expected: FORMAT });
    }
    match is_new {
        true => transaction.commit().map_err(|err| fault(err.into()))?,
        false => transaction.abort().map_err(|err| fault(err.into()))?,
    }
    Ok(identity)
}

/// Creates the file under a temporary name: a crash leaves no incomplete database.
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

/// The number of the file's format, its identity, and whether one of them is new.
fn mark(transaction: &WriteTransaction) -> Result<(u64, u64, bool), redb::Error> {
    let mut meta = transaction.open_table(META)?;
    let known = |name| -> Result<Option<u64>, redb::Error> { Ok(meta.get(name)?.map(|value| value.value())) };
    let (format, identity) = (known("format")?, known("identity")?);
    if let (Some(format), Some(identity)) = (format, identity) {
        return Ok((format, identity, false));
    }
    transaction.open_table(RECORDS)?;
    let format = format.unwrap_or(FORMAT);
    // Random: the standard library seeds its maps by the system.
    let identity = RandomState::new().build_hasher().finish();
    meta.insert("format", format)?;
    meta.insert("identity", identity)?;
    Ok((format, identity, true))
}

#[cfg(test)]
mod tests;
