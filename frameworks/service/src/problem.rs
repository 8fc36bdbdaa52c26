//! Problems of a service spec: where, of which value, and what would be right.

use std::fmt;

/// Limit of the problems that one report holds; a file with more gets a last one that says so.
pub const PROBLEMS_MAX: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    /// The spec is usable, but something in it has no effect.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    /// From 1, in the file as it is written, before rendering.
    pub line: usize,
    pub column: usize,
    /// The value, as `pods.hello.tasks.server.goal`; empty for the whole document.
    pub path: String,
    pub message: String,
}

/// The problems of one file, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub file: String,
    pub problems: Vec<Problem>,
}

impl Report {
    pub fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    pub fn warnings(&self) -> usize {
        self.problems.len() - self.errors()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(out, "{}:{problem}", self.file)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: ", self.line, self.column)?;
        if self.severity == Severity::Warning {
            out.write_str("warning: ")?;
        }
        match self.path.as_str() {
            "" => out.write_str(&self.message),
            path => write!(out, "{path}: {}", self.message),
        }
    }
}
