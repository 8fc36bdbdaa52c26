//! Records that live as long as the process: for tests and throw-away clusters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use tepui_fsm::Write;

use crate::StoreFault;

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
}

impl Memory {
    pub fn load(&self) -> Vec<(String, Vec<u8>)> {
        self.lock().values.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub fn commit(&self, writes: &[Write]) -> Result<(), StoreFault> {
        let mut content = self.lock();
        if content.full {
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

    /// Makes commits fail as a full disk does, until there is room again.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Makes every later commit fail, as a broken disk would.
    pub fn break_down(&self) {
        self.lock().broken = true;
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no code panics while it holds this lock")
    }
}
