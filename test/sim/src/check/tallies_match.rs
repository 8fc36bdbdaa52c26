//! Tallies match: the master's counters of tasks and resources equal the result of a walk over its state.

use tepui_core_master::Tallies;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct TalliesMatch;

impl Check for TalliesMatch {
    fn name(&self) -> &'static str {
        "tallies_match"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::MasterBooks(master) = fact else { return Ok(()) };
        let (kept, counted) = (&master.state().tallies, Tallies::of(master.state()));
        match *kept == counted {
            true => Ok(()),
            false => Err(format!("kept {kept:?}, counted {counted:?}")),
        }
    }
}
