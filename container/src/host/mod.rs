//! The host: processes, users and directories of the machine as the kernel tells them.
//!
//! Everything above asks here and never reads `/proc` or calls the kernel by itself.
//! Never here: containers, sandboxes, decisions.

#![allow(unsafe_code)]

pub(crate) mod background;
pub(crate) mod beneath;
pub(crate) mod bpf;
pub(crate) mod event;
pub(crate) mod kernel_file;
pub(crate) mod open_files;
pub(crate) mod pages;
pub(crate) mod process;
pub(crate) mod user;
