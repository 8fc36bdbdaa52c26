//! The v1 wire: every message as a Rust type, generated from `proto/` when the crate is built, with its binary form
//! ([`wire`]), its JSON form ([`json`]) and the framing of streams ([`recordio`]).
//!
//! Names are those of the `.proto` files, never re-cased.
//! Absent: behaviour, clocks, sockets.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[allow(clippy::all, non_upper_case_globals, unused_variables)] // Not every message has fields.
mod forms;
pub mod json;
mod missing;
mod path;
pub mod recordio;
pub mod shape;
pub mod wire;

pub use buffa::{Enumeration, MessageField};
pub use generated::*;
pub use missing::{MISSING_FIELDS_NAMED_MAX, MissingFields};
pub use wire::Wire;

#[allow(clippy::all, clippy::unwrap_used)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

/// Every `.proto` file of the crate as a serialized `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor-set.bin"));
