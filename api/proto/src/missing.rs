//! The list of required fields that a message lacks. Fed by the readers of JSON and of binary input.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::path::Path;
use crate::shape::Shape;

/// Further fields are counted, not named: the list becomes part of an answer.
pub const MISSING_FIELDS_NAMED_MAX: usize = 100;

/// Required fields that are absent, each with its path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingFields {
    paths: Vec<String>,
    unnamed: usize,
}

impl MissingFields {
    /// The paths of the first [`MISSING_FIELDS_NAMED_MAX`] of them.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Notes that the message at `path` lacks the fields in `bits`.
    pub(crate) fn note(&mut self, path: &Path, shape: &Shape, bits: u128) {
        for field in shape.named(bits) {
            if self.paths.len() == MISSING_FIELDS_NAMED_MAX {
                self.unnamed += 1;
                continue;
            }
            let parent = path.to_string();
            self.paths.push(if parent.is_empty() {
                field.name.to_string()
            } else {
                format!("{parent}.{}", field.name)
            });
        }
    }

    /// Discards missing fields below `path`, because another value replaces the one there.
    pub(crate) fn forget_inside(&mut self, path: &Path) {
        if !self.is_empty() {
            let inside = path.to_string();
            self.paths.retain(|path| {
                !path.strip_prefix(inside.as_str()).is_some_and(|rest| rest.starts_with(['.', '[']))
            });
        }
    }
}

impl fmt::Display for MissingFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Missing required fields: {}", self.paths.join(", "))?;
        if self.unnamed > 0 {
            write!(f, " and {} more", self.unnamed)?;
        }
        Ok(())
    }
}
