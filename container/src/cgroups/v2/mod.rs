//! The controllers of cgroups v2, a file each: what to write into which file. Pure.
//!
//! `cpuset` and `io` have nothing to set; devices are not filtered on v2.

pub(super) mod cpu;
pub(super) mod memory;
pub(super) mod pids;
