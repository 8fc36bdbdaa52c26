//! Limit of the unpacked size of a command's files in its sandbox. Used in the helper, whose current directory is the
//! sandbox.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use tepui_proto::mesos::v1 as pb;

use super::fault::Fault;
use crate::host::background::{Interrupted, blocking};
use crate::isolators::{sandbox_quota, used_bytes};

/// How often the sandbox is measured while an archive is unpacked.
const MEASURE_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Budget {
    bytes_max: u64,
    /// It is what the container has of `disk`; else the agent's own limit.
    is_disk: bool,
}

impl Budget {
    /// The container's disk, or the agent's limit for containers without one.
    pub fn new(resources: &[pb::Resource], bytes_max: u64) -> Self {
        match sandbox_quota(resources) {
            Some(disk) => Self { bytes_max: disk, is_disk: true },
            None => Self { bytes_max, is_disk: false },
        }
    }

    /// The kernel kills this process or a tool of it when it writes a single file that is larger.
    pub fn limit_files(self) -> io::Result<()> {
        let limit = Some(self.bytes_max);
        Ok(setrlimit(Resource::Fsize, Rlimit { current: limit, maximum: limit })?)
    }

    /// What is left for the next file.
    pub fn left(self) -> u64 {
        self.bytes_max.saturating_sub(used_bytes(Path::new(".")))
    }

    pub fn is_exceeded(self) -> bool {
        used_bytes(Path::new(".")) > self.bytes_max
    }

    /// Ends when the sandbox holds too much. Safe to abandon.
    pub async fn exceeded(self) {
        loop {
            tokio::time::sleep(MEASURE_INTERVAL).await;
            match blocking(move || self.is_exceeded()).await {
                Ok(false) | Err(Interrupted::GoingDown) => (),
                // What cannot be measured is not let grow.
                Ok(true) | Err(Interrupted::Panicked(_)) => return,
            }
        }
    }

    pub fn fault(self) -> Fault {
        match self.is_disk {
            true => Fault::AboveDisk(self.bytes_max),
            false => Fault::AboveLimit(self.bytes_max),
        }
    }
}
