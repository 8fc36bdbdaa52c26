//! The host: processes, users and directories of the machine as the kernel reports them.
//!
//! The only part that reads `/proc` or calls the kernel. Absent: containers, sandboxes, decisions.

#![allow(unsafe_code)]

pub(crate) mod background;
pub(crate) mod beneath;
pub(crate) mod bpf;
pub(crate) mod event;
pub(crate) mod kernel_file;
pub(crate) mod open_files;
pub(crate) mod process;
pub(crate) mod user;
