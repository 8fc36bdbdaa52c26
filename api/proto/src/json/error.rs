//! What can be wrong with JSON input. The text is for the peer that sent it.

use alloc::string::String;
use core::fmt;

use super::reader::JSON_DEPTH_MAX;
use crate::missing::MissingFields;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// Not JSON. `line` counts from 1; `near` is what follows on that line, shortened.
    Syntax { line: usize, near: String },
    /// Nested deeper than [`JSON_DEPTH_MAX`].
    TooDeep,
    /// Valid JSON, but not an object.
    NotAnObject,
    /// A value that does not fit its field.
    Value { path: String, problem: String },
    /// All values fit, but required fields are absent.
    Missing(MissingFields),
}

impl JsonError {
    /// Whether the input was no JSON at all, as opposed to JSON that is no such message.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Syntax { .. } | Self::TooDeep)
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { line, near } => write!(f, "syntax error at line {line} near: {near}"),
            Self::TooDeep => write!(f, "nested deeper than {JSON_DEPTH_MAX} levels"),
            Self::NotAnObject => f.write_str("Expecting a JSON object"),
            Self::Value { path, problem } if path.is_empty() => f.write_str(problem),
            Self::Value { path, problem } => write!(f, "{path}: {problem}"),
            Self::Missing(missing) => missing.fmt(f),
        }
    }
}

impl core::error::Error for JsonError {}
