//! Records in memory: for tests and temporary clusters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use tepui_fsm::Write;

use crate::{Room, StoreFault};

/// Clones share their content, so that a test can start a second machine from the first one's records.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    values: BTreeMap<String, Vec<u8>>,
    full: bool,
    broken: bool,
    /// The number of commits accepted while full; `None`: the room is not limited.
    reserve: Option<u64>,
    reserve_used: u64,
}

impl Memory {
    pub fn load(&self) -> Vec<(String, Vec<u8>)> {
        self.lock().values.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub fn commit(&self, writes: &[Write]) -> Result<(), StoreFault> {
        let mut content = self.lock();
        if content.full && content.reserve.is_some_and(|reserve| content.reserve_used < reserve) {
            content.reserve_used += 1;
        } else if content.full {
            return Err(StoreFault::DiskFull { path: PathBuf::from("memory") });
        }
        if content.broken {
            return Err(StoreFault::Corrupt { path: PathBuf::from("memory"), what: "it broke".into() });
        }
        for write in writes {
            match &write.value {
                Some(value) => content.values.insert(write.key.clone(), value.clone()),
                None => content.values.remove(&write.key),
            };
        }
        Ok(())
    }

    /// Makes commits fail as on a full disk.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Lets a full disk take so many commits.
    pub fn set_reserve(&self, commits: u64) {
        self.lock().reserve = Some(commits);
    }

    pub fn uses_reserve(&self) -> bool {
        self.lock().reserve_used > 0
    }

    pub fn measure_room(&self) -> Option<Room> {
        let mut content = self.lock();
        let reserve_bytes = content.reserve?;
        if !content.full {
            content.reserve_used = 0;
        }
        let (is_short, reserve_used_bytes) = (content.full, content.reserve_used);
        let available_bytes = if is_short { 0 } else { u64::MAX };
        Some(Room { is_short, available_bytes, reserve_bytes, reserve_used_bytes })
    }

    /// Makes every later commit fail, as a broken disk would.
    pub fn break_down(&self) {
        self.lock().broken = true;
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no code panics while it holds this lock")
    }
}
