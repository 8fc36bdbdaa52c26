//! What a framework and its executor agree on about a container that a task holds resources for and that clients start.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The `data` of the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerTask {
    /// Of the engine.
    pub socket: PathBuf,
    /// Of the container; empty: the engine chooses one.
    pub name: String,
    /// Pulled if the engine does not have it.
    pub image: String,
    /// Of which the container is made.
    pub document: Value,
    /// Whether the executor starts it at once.
    pub start: bool,
    /// A label that no other container has, as `key=value`: how it is found again if the answer of the engine was lost.
    pub label: String,
    /// The id of a container to adopt; then nothing is created.
    #[serde(default)]
    pub adopt: Option<String>,
    /// It is adopted because it runs without a task; if it does not run any more, there is nothing to hold.
    #[serde(default)]
    pub is_orphan: bool,
}

/// The `data` of the last update of a task whose image could not be pulled: the client may pull it with its own credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingImage {
    pub missing_image: String,
}

/// The `data` of status updates: the container on the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerReport {
    pub id: String,
    /// Without a slash.
    pub name: String,
}
