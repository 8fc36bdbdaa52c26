//! External volumes: requests to a Docker volume driver, for each pod instance.
//!
//! They are in no offer: nothing is reserved for them. Their names depend on the pod index only, so data follows a
//! pod to another agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of Portworx's Docker plugin.
pub const PORTWORX_PLUGIN: &str = "pxd";
/// Name of REX-Ray's Docker plugin.
pub const REXRAY_PLUGIN: &str = "rexray";

const MB_PER_GB: u64 = 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalVolume {
    /// Key in the file.
    pub key: String,
    /// Name of the Docker plugin.
    pub plugin: String,
    pub container_path: String,
    /// As given; `driver_options` adds what the driver needs.
    pub options: BTreeMap<String, String>,
    pub size_mb: Option<u64>,
    pub volume_name: Option<String>,
    pub mode: VolumeMode,
    pub sharing: Sharing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeMode {
    ReadWrite,
    ReadOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharing {
    /// A volume for each pod instance.
    PodExclusive,
    /// One volume for all pod instances.
    PodShared,
}

/// Whether the unit of a plugin's `size` option is known: GB.
pub fn size_is_in_gb(plugin: &str) -> bool {
    matches!(plugin, PORTWORX_PLUGIN | REXRAY_PLUGIN)
}

impl ExternalVolume {
    /// The name without the index.
    pub fn base_name(&self, service: &str, pod: &str) -> String {
        let raw = match &self.volume_name {
            Some(name) => name.clone(),
            None => format!("{service}{}{pod}", self.separator()),
        };
        raw.strip_prefix('/').unwrap_or(&raw).replace('/', "__")
    }

    /// The volume of a pod instance, as the driver knows it.
    pub fn name(&self, service: &str, pod: &str, index: u32) -> String {
        let base = self.base_name(service, pod);
        match self.sharing {
            Sharing::PodExclusive => format!("{base}{}{index}", self.separator()),
            Sharing::PodShared => base,
        }
    }

    fn separator(&self) -> char {
        if self.plugin == PORTWORX_PLUGIN { '-' } else { '_' }
    }

    /// Options for the driver, in a stable order: executors of one pod must be equal.
    pub fn driver_options(&self) -> BTreeMap<String, String> {
        let mut options = self.options.clone();
        if let Some(size) = self.size_mb {
            options.insert("size".to_owned(), size.div_ceil(MB_PER_GB).to_string());
        }
        if self.plugin == PORTWORX_PLUGIN {
            options.entry("nodes".to_owned()).or_insert_with(|| "LocalNode".to_owned());
            if self.sharing == Sharing::PodShared && !options.contains_key("sharedv4") {
                options.insert("shared".to_owned(), "true".to_owned());
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(plugin: &str, volume_name: Option<&str>, sharing: Sharing) -> ExternalVolume {
        ExternalVolume {
            key: "v".into(),
            plugin: plugin.into(),
            container_path: "data".into(),
            options: BTreeMap::new(),
            size_mb: None,
            volume_name: volume_name.map(str::to_owned),
            mode: VolumeMode::ReadWrite,
            sharing,
        }
    }

    #[test]
    fn names_follow_the_driver_and_the_sharing() {
        use Sharing::{PodExclusive, PodShared};
        let cases = [
            ("pxd", None, PodExclusive, "db-node-3"),
            ("pxd", Some("data"), PodExclusive, "data-3"),
            ("pxd", Some("data"), PodShared, "data"),
            ("rexray", None, PodExclusive, "db_node_3"),
            ("btrfs", Some("/team/data"), PodExclusive, "team__data_3"),
            ("btrfs", Some("data"), PodShared, "data"),
        ];
        for (plugin, name, sharing, expected) in cases {
            assert_eq!(volume(plugin, name, sharing).name("db", "node", 3), expected);
        }
    }

    #[test]
    fn sizes_are_given_in_the_unit_of_the_driver() {
        let mut portworx = volume("pxd", None, Sharing::PodShared);
        portworx.size_mb = Some(1025);
        let options: Vec<String> =
            portworx.driver_options().iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(options, ["nodes=LocalNode", "shared=true", "size=2"]);
        assert!(volume("btrfs", None, Sharing::PodShared).driver_options().is_empty());
    }
}
