//! A candidate for a container: an engine as the scheduler looks at it, with the resources of one request.
//!
//! Made anew for each attempt from agents and their offers; borrows everything and changes nothing.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_resources::Scalar;

use crate::occupant::{Image, Occupant};
use crate::res_type::RES_TYPE;

/// Best health.
pub const HEALTH_MAX: i64 = 100;

#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The id of the agent.
    pub id: &'a str,
    /// The name of the engine.
    pub name: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    /// Takes the place of a label of the engine of the same name.
    pub res_type: Option<&'static str>,
    /// From 0, which no container is placed on, to `HEALTH_MAX`.
    pub health: i64,
    /// How many containers are on it.
    pub occupancy: usize,
    /// Empty if the request does not depend on them.
    pub occupants: Vec<&'a Occupant>,
    /// Of the containers that the request depends on, those that have this name on some node.
    pub dependency_names: Vec<&'a str>,
    pub images: &'a [Image],
    pub cpus: Scalar,
    /// In MiB.
    pub memory: Scalar,
}

impl Node<'_> {
    /// Empty if there is none: a constraint cannot tell the two apart.
    pub fn label(&self, key: &str) -> &str {
        match (key, self.res_type) {
            (RES_TYPE, res_type) => res_type.unwrap_or_default(),
            (key, _) => self.labels.get(key).map(String::as_str).unwrap_or_default(),
        }
    }

    /// The container that a dependency names: by its name, with or without the engine's, by its id or the beginning of it. A name
    /// may look like the beginning of an id; then the container of that name is meant, wherever it is.
    pub fn has_container(&self, named: &str) -> bool {
        let named = named.trim_start_matches('/');
        let named = named.strip_prefix(self.name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(named);
        let by_id = !named.is_empty() && !self.dependency_names.contains(&named);
        self.occupants.iter().any(|it| it.name == named || (by_id && it.id.starts_with(named)))
    }
}
