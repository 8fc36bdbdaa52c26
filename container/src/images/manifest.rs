//! The documents of images: indexes, manifests and configurations, in the words of Docker and OCI alike.

use serde::Deserialize;

use super::digest::Digest;
use super::fault::DocumentFault;

/// Layers of one image; overlay file systems take as many.
const LAYERS_MAX: usize = 500;

/// Something that is kept by its digest.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub digest: Digest,
    pub platform: Option<Platform>,
    #[serde(default)]
    pub annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Platform {
    #[serde(default)]
    pub os: String,
    #[serde(default)]
    pub architecture: String,
}

/// An index or a manifest: a registry or layout may return either.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    #[serde(default)]
    pub schema_version: u32,
    /// Of an index.
    #[serde(default)]
    pub manifests: Vec<Descriptor>,
    pub config: Option<Descriptor>,
    #[serde(default)]
    pub layers: Vec<Descriptor>,
}

/// What an image is made of.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub rootfs: RootFs,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RootFs {
    /// Of the layers without compression, the lowest first.
    pub diff_ids: Vec<Digest>,
}

impl Manifest {
    pub fn parse(bytes: &[u8]) -> Result<Manifest, DocumentFault> {
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|err| DocumentFault::Json { what: "manifest", err })?;
        match manifest.schema_version {
            2 => Ok(manifest),
            other => Err(DocumentFault::Schema(other)),
        }
    }

    /// The one of an index for this machine.
    pub fn for_this_machine(&self) -> Result<&Descriptor, DocumentFault> {
        let architecture = architecture();
        let fits = |one: &&Descriptor| match &one.platform {
            Some(platform) => platform.os == "linux" && platform.architecture == architecture,
            None => self.manifests.len() == 1,
        };
        self.manifests.iter().find(fits).ok_or(DocumentFault::Architecture(architecture))
    }
}

impl Config {
    pub fn parse(bytes: &[u8]) -> Result<Config, DocumentFault> {
        let config: Config = serde_json::from_slice(bytes)
            .map_err(|err| DocumentFault::Json { what: "image configuration", err })?;
        match config.rootfs.diff_ids.len() {
            0..=LAYERS_MAX => Ok(config),
            count => Err(DocumentFault::TooManyLayers { count, count_max: LAYERS_MAX }),
        }
    }
}

/// As Go calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    }
}
