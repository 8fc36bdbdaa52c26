//! The state of a task as people read and type it: `running` for `TASK_RUNNING`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::Value;

use crate::listing::{lists, text};
use crate::output::Tone;
use crate::table::Cell;

/// Every state as displayed and as in the protocol, with its tone, in the order of a task's life cycle.
const STATES: [(&str, &str, Tone); 14] = [
    ("staging", "TASK_STAGING", Tone::Busy),
    ("starting", "TASK_STARTING", Tone::Busy),
    ("running", "TASK_RUNNING", Tone::Good),
    ("killing", "TASK_KILLING", Tone::Busy),
    ("unreachable", "TASK_UNREACHABLE", Tone::Bad),
    ("finished", "TASK_FINISHED", Tone::Quiet),
    ("failed", "TASK_FAILED", Tone::Bad),
    ("killed", "TASK_KILLED", Tone::Quiet),
    ("error", "TASK_ERROR", Tone::Bad),
    ("lost", "TASK_LOST", Tone::Bad),
    ("dropped", "TASK_DROPPED", Tone::Bad),
    ("gone", "TASK_GONE", Tone::Bad),
    ("gone_by_operator", "TASK_GONE_BY_OPERATOR", Tone::Bad),
    ("unknown", "TASK_UNKNOWN", Tone::Bad),
];

/// The number of non-terminal states above.
const LIVE: usize = 5;

/// Reads a state with or without its `TASK_`.
pub fn parser() -> PossibleValuesParser {
    PossibleValuesParser::new(STATES.map(|(name, whole, _)| PossibleValue::new(name).alias(whole)))
}

/// A task's state, and whether its last check went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskState {
    name: String,
    unhealthy: bool,
}

impl TaskState {
    /// Of a task in a classic answer.
    pub fn of(task: &Value) -> Self {
        let last = lists(task, &["statuses"]).last();
        Self::new(text(task, "state"), last.is_some_and(|last| last["healthy"] == false))
    }

    /// From the name in the protocol.
    pub fn new(name: &str, unhealthy: bool) -> Self {
        Self { name: short(name), unhealthy }
    }

    /// Whether this is the state that was typed.
    pub fn is(&self, typed: &str) -> bool {
        self.name == short(typed)
    }

    pub fn is_live(&self) -> bool {
        self.place().is_some_and(|place| place < LIVE)
    }

    pub fn cell(&self) -> Cell {
        Cell::text(self.shown()).tone(self.tone())
    }

    pub fn shown(&self) -> String {
        match self.unhealthy && self.name == "running" {
            true => format!("{} (unhealthy)", self.name),
            false => self.name.clone(),
        }
    }

    pub fn tone(&self) -> Tone {
        match self.place() {
            Some(_) if self.unhealthy => Tone::Bad,
            Some(place) => STATES[place].2,
            None => Tone::Plain, // A state of a newer master.
        }
    }

    fn place(&self) -> Option<usize> {
        STATES.iter().position(|(name, ..)| *name == self.name)
    }
}

fn short(name: &str) -> String {
    let name = name.to_lowercase();
    name.strip_prefix("task_").unwrap_or(&name).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn task_states_are_lower_case() {
        let table = [
            (json!({"state": "TASK_RUNNING"}), "running", Tone::Good, true),
            (
                json!({"state": "TASK_RUNNING", "statuses": [{"healthy": false}]}),
                "running (unhealthy)",
                Tone::Bad,
                true,
            ),
            (
                json!({"state": "TASK_RUNNING", "statuses": [{"healthy": false}, {"healthy": true}]}),
                "running",
                Tone::Good,
                true,
            ),
            (json!({"state": "TASK_UNREACHABLE"}), "unreachable", Tone::Bad, true),
            (json!({"state": "TASK_FINISHED"}), "finished", Tone::Quiet, false),
            (json!({"state": "TASK_NEW"}), "new", Tone::Plain, false),
            (json!({}), "", Tone::Plain, false),
        ];
        for (task, shown, tone, live) in table {
            let state = TaskState::of(&task);
            assert_eq!(
                (state.shown().as_str(), state.tone(), state.is_live()),
                (shown, tone, live),
                "{task}"
            );
        }
        assert!(TaskState::new("TASK_RUNNING", true).is("Running"));
        assert!(TaskState::new("TASK_RUNNING", true).is("task_running"));
    }
}
