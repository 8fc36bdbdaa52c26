//! The controllers of cgroups v1, a file each: what to write into which file. Pure.

pub(super) mod cpu;
pub(super) mod cpuset;
pub(super) mod devices;
pub(super) mod memory;
pub(super) mod pids;
