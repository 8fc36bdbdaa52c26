//! Tallies match: the numbers that the master keeps of tasks and resources are those that a walk over its books gives.

use tepui_core_master::Tallies;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct TalliesMatch;

impl Check for TalliesMatch {
    fn name(&self) -> &'static str {
        "tallies_match"
    }

    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::MasterTurn(master) = fact else { return Ok(()) };
        let (kept, counted) = (&master.state().tallies, Tallies::of(master.state()));
        match *kept == counted {
            true => Ok(()),
            false => Err(format!("kept {kept:?}, counted {counted:?}")),
        }
    }
}
