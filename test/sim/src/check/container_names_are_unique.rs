//! Container names are unique in the whole cluster, on the manager's records.

use std::collections::BTreeSet;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct ContainerNamesAreUnique;

impl Check for ContainerNamesAreUnique {
    fn name(&self) -> &'static str {
        "container_names_are_unique"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::SwarmTurn(view) = fact else { return Ok(()) };
        let mut names = BTreeSet::new();
        let names_of = view.containers.values().map(|it| it.occupant.name.as_str());
        match names_of.filter(|name| !name.is_empty()).find(|name| !names.insert(*name)) {
            Some(twice) => Err(format!("{twice} is the name of two containers")),
            None => Ok(()),
        }
    }
}
