//! Histories that once violated something, recorded when they did. They always run.

/// Each by its name, with its text.
pub const REGRESSIONS: [(&str, &str); 0] = [];
