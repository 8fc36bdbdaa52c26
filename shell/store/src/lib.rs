//! Durable records: a flat, ordered key space of bytes.
//!
//! Written by the runtime's commit thread, read once at start. The meaning of keys and values belongs to the machine.
//! A commit is atomic and durable when it returns. After a failed commit the content is undefined until the store is
//! reopened, which is possible after a full disk or an unavailable etcd; every other fault is fatal. A full disk is no
//! fault while the reserve lasts.
//!
//! Absent: threads, retries of a commit.
#![forbid(unsafe_code)]

mod embedded;
pub mod etcd;
mod fault;
mod guarded;
mod memory;
mod newest;
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
    /// For tests and temporary clusters; lives as long as a clone of it.
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

    /// All records, in the order of their keys.
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

    /// Reopens the store after a failed commit, so that the same writes can be retried. Writes are puts and deletes by
    /// key, so a partial first attempt does no harm.
    pub fn reopen(&mut self) -> Result<(), StoreFault> {
        match self {
            Store::Embedded(embedded) => embedded.reopen(),
            Store::Memory(_) | Store::Etcd(_) => Ok(()),
        }
    }

    /// Checks the available room and applies commits in the reserve if there is enough. `None` for a store in memory
    /// without a limit.
    pub fn measure_room(&mut self) -> Result<Option<Room>, StoreFault> {
        match self {
            Store::Embedded(embedded) => embedded.measure_room().map(Some),
            Store::Memory(memory) => Ok(memory.measure_room()),
            Store::Etcd(records) => Ok(Some(records.measure_room())),
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
