//! Stateful services: the YAML service spec and the plans that deploy, update and remove its pods.
//!
//! Pure: the text of the spec, the environment, templates, time and task states enter as arguments; nothing here opens a file,
//! reads a clock or knows the master.
#![forbid(unsafe_code)]

pub mod mustache;
mod parse;
pub mod plan;
mod problem;
mod reader;
pub mod spec;
mod yaml;

pub use parse::{Input, parse};
pub use problem::{Problem, Report, Severity};
