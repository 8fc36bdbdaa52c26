//! A change of a running container.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;
use tepui_types::Volume;

/// What a running container is to have from now on.
#[derive(Debug)]
pub(super) struct Update {
    pub resources: Vec<pb::Resource>,
    pub limits: BTreeMap<String, f64>,
    pub volumes: Vec<Volume>,
}
