//! The path of an error in a message: `accept.operations[1].launch.task_infos[0].name`.
//!
//! Maintained by the readers of JSON and binary input; formatted only on an error.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

#[derive(Debug, Default)]
pub(crate) struct Path {
    steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) enum Step {
    Field(&'static str),
    Index(usize),
    Key(String),
}

impl Path {
    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn pop(&mut self) {
        self.steps.pop();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.steps.iter().enumerate() {
            if depth > 0 && !matches!(step, Step::Index(_)) {
                f.write_str(".")?;
            }
            match step {
                Step::Field(name) => f.write_str(name)?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => f.write_str(key)?,
            }
        }
        Ok(())
    }
}
