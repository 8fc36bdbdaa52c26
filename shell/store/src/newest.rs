//! Selects the newest commit of a database file before the engine opens it for use.
//!
//! The header of the engine holds two commits, and a bit that selects one. A two-phase commit writes itself over the commit that
//! is not selected, syncs, and then flips the bit. A bit that selects the older of the two commits is therefore an
//! interrupted commit or damage, and the engine, which takes the bit for granted, would silently return to the older commit.
//! Here the newer one is tried: if every page of it is whole, it is selected, which is right in both cases; if not, it was
//! interrupted in its first phase and never acknowledged.
//!
//! The trial writes to memory, so that nothing changes on disk before one byte does. A commit slot whose number is damaged
//! makes the other commit look newer; it fails its own checksum, so the selected commit has to be whole as well.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use redb::{Database, StorageBackend};

use crate::StoreFault;
use crate::guarded::guarded;

/// Of the engine's format 3: where its header holds its flags, the size of what it holds, and of its two commits the
/// place and the place of the number in one.
const FLAGS_AT: u64 = 9;
const HEADER_BYTES: usize = 320;
const SLOTS_AT: usize = 64;
const SLOT_BYTES: usize = 128;
const NUMBER_AT: usize = 104;

/// Flags: the selected commit, whether the last process crashed, whether the selected commit has two phases.
const SELECTED: u8 = 1;
const CRASHED: u8 = 2;
const TWO_PHASES: u8 = 4;

/// Makes the newest commit of the file the selected one. The caller holds the lock of the file.
pub(crate) fn select_newest(file: &File, path: &Path) -> Result<(), StoreFault> {
    let fault = |err| StoreFault::io("inspect", path, err);
    let mut header = [0; HEADER_BYTES];
    match file.read_exact_at(&mut header, 0) {
        // The engine reports it.
        Err(err) if err.kind() == ErrorKind::UnexpectedEof => return Ok(()),
        done => done.map_err(fault)?,
    }
    let selected = header[FLAGS_AT as usize] & SELECTED;
    if number(&header, selected) >= number(&header, selected ^ SELECTED) {
        return Ok(());
    }
    let newer = selected ^ SELECTED | CRASHED | TWO_PHASES;
    match try_commit(file, path, newer) {
        Ok(()) => (),
        Err(StoreFault::Corrupt { .. }) => return Ok(()),
        Err(fault) => return Err(fault),
    }
    try_commit(file, path, selected | CRASHED | TWO_PHASES)?;
    tracing::warn!(path = %path.display(), "completed the newest commit of a database, which was not selected");
    // What the trial read may be in memory only: it is durable before it is selected.
    file.sync_data().map_err(fault)?;
    file.write_all_at(&[newer], FLAGS_AT).map_err(fault)?;
    file.sync_data().map_err(fault)
}

fn number(header: &[u8; HEADER_BYTES], slot: u8) -> u64 {
    let at = SLOTS_AT + usize::from(slot) * SLOT_BYTES + NUMBER_AT;
    u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"))
}

/// Checks the commit that `flags` select.
fn try_commit(file: &File, path: &Path, flags: u8) -> Result<(), StoreFault> {
    let trial = Trial::new(file)
        .and_then(|trial| trial.write(FLAGS_AT, &[flags]).map(|()| trial))
        .map_err(|err| StoreFault::io("inspect", path, err))?;
    open_checked(trial, path).map(drop)
}

/// Opens a database and checks every page of it.
pub(crate) fn open_checked(backend: impl StorageBackend, path: &Path) -> Result<Database, StoreFault> {
    guarded(path, || {
        let mut database = Database::builder()
            .create_with_backend(backend)
            .map_err(|err| StoreFault::engine("open", path, err))?;
        match database.check_integrity() {
            Ok(true) => Ok(database),
            Ok(false) => {
                let what = "its checksums do not match".into();
                Err(StoreFault::Corrupt { path: path.to_path_buf(), what })
            }
            Err(err) => Err(StoreFault::engine("check", path, err)),
        }
    })
}

const PAGE_BYTES: u64 = 4096;

/// A file whose changes stay in memory.
#[derive(Debug)]
struct Trial {
    file: File,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    len: u64,
    /// How much of the file is part of it; what is added after it was shortened is zero.
    file_len: u64,
    /// By number.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Trial {
    fn new(file: &File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        let changes = Changes { len, file_len: len, pages: BTreeMap::new() };
        Ok(Self { file: file.try_clone()?, changes: Mutex::new(changes) })
    }

    fn changes(&self) -> io::Result<MutexGuard<'_, Changes>> {
        self.changes.lock().map_err(|_| io::Error::other("a thread panicked during a write"))
    }

    fn page(&self, changes: &Changes, number: u64) -> io::Result<Vec<u8>> {
        if let Some(page) = changes.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE_BYTES as usize];
        let at = number * PAGE_BYTES;
        let present = changes.file_len.saturating_sub(at).min(PAGE_BYTES) as usize;
        self.file.read_exact_at(&mut page[..present], at)?;
        Ok(page)
    }
}

/// The pieces of a range by page: its number, where the piece begins in it, and which part of the range it is.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % PAGE_BYTES) as usize;
        let size = (len - done).min(PAGE_BYTES as usize - start);
        let part = done..done + size;
        done += size;
        (size > 0).then_some((at / PAGE_BYTES, start, part))
    })
}

impl StorageBackend for Trial {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes()?.len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes()?;
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > changes.len) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        for (number, start, part) in pieces(offset, out.len()) {
            let size = part.len();
            out[part].copy_from_slice(&self.page(&changes, number)?[start..start + size]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = self.changes()?;
        changes.len = len;
        changes.file_len = changes.file_len.min(len);
        changes.pages.retain(|number, _| number * PAGE_BYTES < len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.changes()?;
        for (number, start, part) in pieces(offset, data.len()) {
            let mut page = self.page(&changes, number)?;
            page[start..start + part.len()].copy_from_slice(&data[part]);
            changes.pages.insert(number, page);
        }
        changes.len = changes.len.max(offset + data.len() as u64);
        Ok(())
    }
}
