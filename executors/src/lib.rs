//! Command and default executors
