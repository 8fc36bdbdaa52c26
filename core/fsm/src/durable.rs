//! The stored form of a record: writes to a flat, ordered key space.
//!
//! The store handles keys and values only; their meaning belongs to the machine. The writes of one record become durable
//! together.

use alloc::string::String;
use alloc::vec::Vec;

/// One change of one key: a new value, or its removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub key: String,
    pub value: Option<Vec<u8>>,
}

impl Write {
    pub fn put(key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), value: Some(value.into()) }
    }

    pub fn delete(key: impl Into<String>) -> Self {
        Self { key: key.into(), value: None }
    }
}

/// A record that lists the keys it changes.
pub trait Durable {
    fn writes(&self, into: &mut Vec<Write>);
}
