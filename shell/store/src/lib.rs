//! Where records become durable: a flat, ordered key space of bytes.
//!
//! Fed by the runtime's commit thread, read once at start. What keys and values mean is the machine's business.
//! A commit is all or nothing and is on disk when it returns. After a failed one nobody can say what the file holds
//! until it is opened again; with a disk that was merely full, or an etcd that was merely away, that
//! can be done, everything else is fatal. A full disk is not even a failure as long as the reserve of a file lasts.
//!
//! Never here: threads, retries of a commit.
#![forbid(unsafe_code)]

mod embedded;
pub mod etcd;
mod fault;
mod memory;
mod private;
mod reserve;
mod room;

use std::path::Path;

pub use embedded::Embedded;
use etcd::EtcdRecords;
pub use fault::StoreFault;
pub use memory::Memory;
pub use private::{limit_mode, limit_own_directory, private_directory};
pub use reserve::reserve_path;
pub use room::{Headroom, Room, available_bytes};
use tepui_fsm::Write;

/// One of the places for records.
#[derive(Debug)]
pub enum Store {
    /// One file; survives the process.
    Embedded(Embedded),
    /// For tests and throw-away clusters; survives as long as a clone of it.
    Memory(Memory),
    /// Shared by several masters, of which one leads; reading and writing wait for the network.
    Etcd(EtcdRecords),
}

impl Store {
    /// Opens the file at `path`, or makes it. Its directory must exist.
    pub fn open(path: &Path, headroom: Headroom) -> Result<Self, StoreFault> {
        Embedded::open(path, headroom).map(Store::Embedded)
    }

    pub fn memory() -> Self {
        Store::Memory(Memory::default())
    }

    /// Everything there is, in the order of the keys.
    pub fn load(&self) -> Result<Vec<(String, Vec<u8>)>, StoreFault> {
        match self {
            Store::Embedded(embedded) => embedded.load(),
            Store::Memory(memory) => Ok(memory.load()),
            Store::Etcd(records) => records.load(),
        }
    }

    /// Makes all of `writes` durable together. A later write of the same key wins.
    pub fn commit(&mut self, writes: &[Write]) -> Result<(), StoreFault> {
        match self {
            Store::Embedded(embedded) => embedded.commit(writes),
            Store::Memory(memory) => memory.commit(writes),
            Store::Etcd(records) => records.commit(writes),
        }
    }

    /// After a failed commit: looks at the disk anew, so that the same writes can be tried again. They are puts and
    /// deletes by key, so it does not matter how far the first try came.
    pub fn reopen(&mut self) -> Result<(), StoreFault> {
        match self {
            Store::Embedded(embedded) => embedded.reopen(),
            Store::Memory(_) | Store::Etcd(_) => Ok(()),
        }
    }

    /// Looks at the room there is, and puts records that are in the reserve where they belong if there is enough. None for
    /// stores whose room is none of ours to watch.
    pub fn look_at_room(&mut self) -> Result<Option<Room>, StoreFault> {
        match self {
            Store::Embedded(embedded) => embedded.look_at_room().map(Some),
            Store::Memory(memory) => Ok(memory.look_at_room()),
            Store::Etcd(_) => Ok(None),
        }
    }

    /// Whether records wait in the reserve for room.
    pub fn uses_reserve(&self) -> bool {
        match self {
            Store::Embedded(embedded) => embedded.uses_reserve(),
            Store::Memory(memory) => memory.uses_reserve(),
            Store::Etcd(_) => false,
        }
    }
}
