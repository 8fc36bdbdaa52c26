//! Stateful services: the YAML service spec, the plans that deploy, update and remove its pods, and the scheduler that follows them.
//!
//! Pure: the text of the spec, the environment, templates, time, randomness and events of the master enter as arguments; nothing here
//! opens a file or a socket or reads a clock.
#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod mustache;
pub mod options;
mod parse;
pub mod plan;
mod problem;
mod reader;
pub mod scheduler;
pub mod spec;
mod yaml;

pub use parse::{Input, parse};
pub use problem::{Problem, Report, Severity};
