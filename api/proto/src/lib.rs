//! The v1 wire: every message as a Rust type, generated from `proto/` when the crate is built.
//!
//! Names are those of the `.proto` files, never re-cased. Never here: behaviour, clocks, sockets.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[allow(clippy::all, clippy::unwrap_used)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

pub use buffa::{Enumeration, Message, MessageField};
pub use generated::*;
