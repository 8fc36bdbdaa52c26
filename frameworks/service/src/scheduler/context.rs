//! What the descriptions of one launch have in common: of its executor, its tasks and their containers.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;

use super::config::Config;
use super::site::Site;
use crate::plan::PodInstance;
use crate::spec::{PodSpec, ServiceSpec};

/// Everything that the tasks of one launch have in common.
pub(super) struct Context<'a> {
    pub config: &'a Config,
    pub spec: &'a ServiceSpec,
    pub pod: &'a PodSpec,
    pub instance: &'a PodInstance,
    pub configuration: &'a str,
    pub site: &'a Site,
    /// By resource set and name of the port.
    pub ports: &'a BTreeMap<String, u64>,
    pub parameters: &'a BTreeMap<String, String>,
    pub references_region: bool,
    pub references_zone: bool,
}

/// Key of a port among the ports of a pod.
pub(super) fn port_key(set: &str, port: &str) -> String {
    format!("{set}/{port}")
}

pub(super) fn labels<'l>(labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> pb::Labels {
    let label = |(key, value): (&str, &str)| pb::Label {
        key: key.to_owned(),
        value: Some(value.to_owned()),
        ..Default::default()
    };
    pb::Labels { labels: labels.into_iter().map(label).collect(), ..Default::default() }
}
