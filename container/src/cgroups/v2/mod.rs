//! The controllers of cgroups v2, a file each: what to write into which file. Pure.
//!
//! `cpuset` and `io` have nothing to set.

pub(super) mod cpu;
pub(super) mod devices;
pub(super) mod memory;
pub(super) mod pids;
