//! Measurements of memory and disk, eviction thresholds, and the eviction in progress.

use alloc::string::String;

use tepui_fsm::Mono;
use tepui_types::{ContainerId, Termination};

use crate::state::paths::is_below;

/// When memory is short (`--eviction_memory_available`, `--eviction_pressure`) or the disk (`--eviction_disk_available`); never,
/// if none is set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Eviction {
    /// Less than this is left.
    pub available_bytes: Option<u64>,
    /// Something waits for memory at least this part of the time, in percent.
    pub pressure: Option<f64>,
    /// Less than this is left on the disk.
    pub disk_available_bytes: Option<u64>,
}

/// The machine's memory. What is not known does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineMemory {
    /// Memory that is available without a kill.
    pub available_bytes: Option<u64>,
    /// Percent of the time in which something waited for memory.
    pub pressure: Option<f64>,
}

/// The memory of one container; of those nested in it, too.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryUse {
    pub id: ContainerId,
    /// Without what the kernel can take back at any time.
    pub used_bytes: u64,
    pub request_bytes: u64,
    /// `None`: endless.
    pub limit_bytes: Option<u64>,
}

/// The container that is being evicted.
#[derive(Debug, Default)]
pub(crate) enum Evicting {
    #[default]
    Idle,
    Going(ContainerId, Termination),
    /// It is gone, but the next sample may have been taken before.
    JustGone,
}

impl Evicting {
    /// Why a container is being evicted, if it is.
    pub(crate) fn cause(&self, id: &ContainerId) -> Option<&Termination> {
        match self {
            Evicting::Going(going, why) if going == id => Some(why),
            Evicting::Going(..) | Evicting::Idle | Evicting::JustGone => None,
        }
    }
}

impl Eviction {
    pub fn watches_memory(&self) -> bool {
        self.available_bytes.is_some() || self.pressure.is_some()
    }

    /// Whether an eviction is due. Only then are containers measured.
    pub fn is_short(&self, machine: &MachineMemory) -> bool {
        let below =
            self.available_bytes.zip(machine.available_bytes).is_some_and(|(least, left)| left < least);
        below || self.pressure.zip(machine.pressure).is_some_and(|(most, now)| now >= most)
    }
}

/// What the sandbox of a container holds, with those of containers nested in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxUse {
    pub id: ContainerId,
    pub used_bytes: u64,
}

/// Room that an eviction made and that is not back yet.
#[derive(Debug, Default)]
pub(crate) enum Releasing {
    #[default]
    Nothing,
    Sandbox {
        path: String,
        until: Mono,
    },
    /// It was removed, but a measurement that comes soon may have been taken before.
    JustReleased {
        at: Mono,
    },
}

impl Releasing {
    /// A path was removed; if it is or contains the sandbox, its space is released.
    pub(crate) fn removed(&mut self, now: Mono, removed: &str) {
        if let Releasing::Sandbox { path, .. } = self
            && (path == removed || is_below(path, removed))
        {
            *self = Releasing::JustReleased { at: now };
        }
    }
}
