//! The controllers of cgroups v1, a file each: what to write into which file. Pure, but for `notify`.

pub(super) mod cpu;
pub(super) mod cpuset;
pub(super) mod devices;
pub(super) mod memory;
pub(super) mod notify;
pub(super) mod pids;
