//! The reserve: preallocated disk space for records that must become durable while the disk is full.
//!
//! A file next to the database, filled with zeros when created, so that writes need no more space. It contains a list of
//! commits; the head holds its length. The head is stored twice, with a sync between the writes: neither a crash nor a
//! flipped bit loses an acknowledged commit. Two unreadable heads, or a commit with a wrong checksum, are damage.
//!
//! Absent: when the reserve is used, and when its commits are applied to the database.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tepui_fsm::Write;

use crate::{StoreFault, limit_mode};

/// What a head begins with.
const MAGIC: [u8; 8] = *b"tepuires";
/// Each copy of the head has its own page, so that one torn write cannot damage both.
const PAGE_BYTES: u64 = 4096;
const HEAD_BYTES: usize = 40;
const HEADS: u64 = 2;
/// Where commits begin.
const DATA_AT: u64 = HEADS * PAGE_BYTES;
/// The length and the checksum before each commit.
const PREFIX_BYTES: usize = 12;
/// Zeros are written in pieces of this size.
const ZEROS_BYTES: usize = 64 * 1024;

/// Something that can be read, written and synced at places.
pub(crate) trait Medium {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    fn size(&self) -> io::Result<u64>;
}

impl Medium for File {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, at)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Why a reserve cannot be used.
#[derive(Debug)]
pub(crate) enum ReserveFault {
    Io(io::Error),
    Damaged(String),
}

impl From<io::Error> for ReserveFault {
    fn from(err: io::Error) -> Self {
        ReserveFault::Io(err)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// Of the database that the commits belong to.
    identity: u64,
    /// Grows with every head that is written: of two that differ the newer one counts.
    generation: u64,
    /// How many bytes of commits count.
    used: u64,
}

/// Records that wait for room in the database.
#[derive(Debug)]
pub(crate) struct Reserve<M = File> {
    medium: M,
    head: Head,
    /// The combined writes of all commits.
    pending: BTreeMap<String, Option<Vec<u8>>>,
}

impl<M: Medium> Reserve<M> {
    /// Takes a medium over whose places up to its size are allocated. One that is all zeros is new.
    pub fn load(mut medium: M, identity: u64) -> Result<Self, ReserveFault> {
        let read = |at: u64| -> io::Result<[u8; HEAD_BYTES]> {
            let mut bytes = [0; HEAD_BYTES];
            medium.read_at(at, &mut bytes)?;
            Ok(bytes)
        };
        let heads = [read(0)?, read(PAGE_BYTES)?];
        let found = heads.iter().filter_map(Head::decode).max_by_key(|head| head.generation);
        let head = match found {
            Some(head) if head.identity == identity => head,
            Some(head) if head.used > 0 => {
                let why =
                    "it contains records of another database; restore the matching one, or move it away";
                return Err(ReserveFault::Damaged(why.into()));
            }
            None if heads.iter().flatten().any(|byte| *byte != 0) => {
                return Err(ReserveFault::Damaged("neither copy of its head can be read".into()));
            }
            Some(_) | None => {
                let head = Head { identity, generation: 1, used: 0 };
                write_head(&mut medium, head)?;
                head
            }
        };
        let mut reserve = Self { medium, head, pending: BTreeMap::new() };
        reserve.read_commits()?;
        Ok(reserve)
    }

    fn read_commits(&mut self) -> Result<(), ReserveFault> {
        let mut at = 0;
        while at < self.head.used {
            let damaged = || ReserveFault::Damaged(format!("the commit at byte {at} is damaged"));
            let mut prefix = [0; PREFIX_BYTES];
            self.medium.read_at(DATA_AT + at, &mut prefix)?;
            let (length, sum) = prefix.split_at(4);
            let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
            let end = at + PREFIX_BYTES as u64 + u64::from(length);
            if end > self.head.used {
                return Err(damaged());
            }
            let mut body = vec![0; length as usize];
            self.medium.read_at(DATA_AT + at + PREFIX_BYTES as u64, &mut body)?;
            if checksum(&body).to_le_bytes() != sum {
                return Err(damaged());
            }
            self.pending.extend(decode(&body).ok_or_else(damaged)?);
            at = end;
        }
        Ok(())
    }

    /// Makes all of `writes` durable; an error of kind `StorageFull` if the rest of the reserve is too small for them.
    pub fn append(&mut self, writes: &[Write]) -> io::Result<()> {
        let body = encode(writes);
        let length = u32::try_from(body.len()).map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        let used = self.head.used + (PREFIX_BYTES + body.len()) as u64;
        if used > self.capacity()? {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let mut entry = Vec::with_capacity(PREFIX_BYTES + body.len());
        entry.extend(length.to_le_bytes());
        entry.extend(checksum(&body).to_le_bytes());
        entry.extend(body);
        self.medium.write_at(DATA_AT + self.head.used, &entry)?;
        self.medium.sync()?;
        self.put_head(used)?;
        self.pending.extend(writes.iter().map(|write| (write.key.clone(), write.value.clone())));
        Ok(())
    }

    /// Forgets everything, which is durable elsewhere now.
    pub fn clear(&mut self) -> io::Result<()> {
        self.put_head(0)?;
        self.pending.clear();
        Ok(())
    }

    fn put_head(&mut self, used: u64) -> io::Result<()> {
        let head = Head { generation: self.head.generation + 1, used, ..self.head };
        write_head(&mut self.medium, head)?;
        self.head = head;
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.head.used == 0
    }

    pub fn used(&self) -> u64 {
        self.head.used
    }

    /// How many bytes of commits fit in.
    pub fn capacity(&self) -> io::Result<u64> {
        Ok(self.medium.size()?.saturating_sub(DATA_AT))
    }

    /// The combined writes of all commits: the last write of each key.
    pub fn pending(&self) -> &BTreeMap<String, Option<Vec<u8>>> {
        &self.pending
    }
}

impl Reserve<File> {
    /// Opens or creates the reserve of the database at `path`, with room for `bytes` of commits or as many as the disk has
    /// room for; see `capacity`.
    pub fn open(path: &Path, bytes: u64, identity: u64) -> Result<Self, StoreFault> {
        let path = &reserve_path(path);
        let fault = |err| StoreFault::io("open", path, err);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).map_err(fault)?;
        match file.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => return Err(StoreFault::Locked { path: path.clone() }),
            Err(TryLockError::Error(err)) => return Err(fault(err)),
        }
        limit_mode(path, 0o600).map_err(fault)?;
        fill(&mut file, DATA_AT + bytes).map_err(fault)?;
        Reserve::load(file, identity).map_err(|err| match err {
            ReserveFault::Io(err) => fault(err),
            ReserveFault::Damaged(what) => StoreFault::Corrupt { path: path.clone(), what },
        })
    }
}

/// Where the reserve of the database at `path` is.
pub fn reserve_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".reserve");
    PathBuf::from(name)
}

/// Appends zeros up to `size`, or as many as there is room for. A longer file is unchanged.
fn fill(file: &mut File, size: u64) -> io::Result<()> {
    let mut at = file.size()?;
    if at >= size {
        return Ok(());
    }
    let zeros = [0; ZEROS_BYTES];
    while at < size {
        let piece = (size - at).min(ZEROS_BYTES as u64) as usize;
        match file.write_at(at, &zeros[..piece]) {
            Ok(()) => at += piece as u64,
            // Heads without room for commits are useless.
            Err(err) if is_full(&err) && at > DATA_AT => break,
            Err(err) => return Err(err),
        }
    }
    file.sync_all()
}

fn is_full(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Both copies, each durable before the other is touched.
fn write_head(medium: &mut impl Medium, head: Head) -> io::Result<()> {
    for copy in 0..HEADS {
        medium.write_at(copy * PAGE_BYTES, &head.encode())?;
        medium.sync()?;
    }
    Ok(())
}

impl Head {
    fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.identity.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.used.to_le_bytes());
        let sum = checksum(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let is_whole = bytes[..8] == MAGIC && number(32) == checksum(&bytes[..32]);
        is_whole.then(|| Head { identity: number(8), generation: number(16), used: number(24) })
    }
}

fn encode(writes: &[Write]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut part = |part: &[u8]| {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend(part);
    };
    for write in writes {
        part(write.key.as_bytes());
        part(&[u8::from(write.value.is_some())]);
        part(write.value.as_deref().unwrap_or_default());
    }
    bytes
}

/// None if this was not made by `encode`.
fn decode(mut bytes: &[u8]) -> Option<Vec<(String, Option<Vec<u8>>)>> {
    let mut part = || -> Option<&[u8]> {
        let (length, rest) = bytes.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?);
        let (part, rest) = rest.split_at_checked(length as usize)?;
        bytes = rest;
        Some(part)
    };
    let mut writes = Vec::new();
    while let Some(key) = part() {
        let key = String::from_utf8(key.to_vec()).ok()?;
        let is_put = part()? == [1];
        let value = part()?.to_vec();
        writes.push((key, is_put.then_some(value)));
    }
    bytes.is_empty().then_some(writes)
}

/// FNV-1a: detects flipped bits; forgery is prevented by the file's mode.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
