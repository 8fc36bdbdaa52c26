//! Panics of the engine as faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::StoreFault;

/// The engine asserts about the content of files, so a damaged one can make it panic. To us that is a damaged file.
pub(crate) fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreFault>) -> Result<T, StoreFault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = match panic.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => panic.downcast_ref::<&str>().copied().unwrap_or("its content is invalid").to_owned(),
        };
        Err(StoreFault::Corrupt { path: path.to_path_buf(), what })
    })
}
