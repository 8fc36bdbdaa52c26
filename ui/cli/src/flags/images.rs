//! The flags of `tepui agent` about images of containers and volumes of Docker's drivers.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use tepui_container::{Backend, DockerVolumeOptions, ImageOptions, Logins};
use tepui_shell_agent::ImageGc;

use super::{access, image_gc, value};

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct ImageFlags {
    /// Image formats for containers: `docker` (includes OCI) [default: none].
    #[arg(long)]
    pub image_providers: Option<String>,
    /// Source of images: `http(s)://host[:port]`, or a directory with `<name>.tar` (`docker save`, OCI
    /// archive) or `<name>/` (OCI layout).
    #[arg(long)]
    pub docker_registry: Option<String>,
    /// Registry credentials: a Docker `config.json` file, or its content.
    #[arg(long)]
    pub docker_config: Option<String>,
    /// Directory of image layers; must not be shared between agents [default: below --work_dir].
    #[arg(long)]
    pub docker_store_dir: Option<PathBuf>,
    /// Backend for root filesystems: `overlay` or `copy` [default: overlay if possible].
    #[arg(long, value_parser = ["overlay", "copy"])]
    pub image_provisioner_backend: Option<String>,
    /// Garbage collection of unused images, as JSON or a file [default: only by PRUNE_IMAGES].
    #[arg(long)]
    pub image_gc_config: Option<String>,
    /// Directory of the state of driver volumes [default: below --runtime_dir].
    #[arg(long)]
    pub docker_volume_checkpoint_dir: Option<PathBuf>,
    /// Change the owner of driver volumes to the user of the container.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub docker_volume_chown: bool,
    /// Directories to search for volume drivers (comma-separated) [default: those of Docker].
    #[arg(long)]
    pub docker_volume_plugin_dirs: Option<String>,
}

/// A directory, made absolute, or a URL as it is.
fn origin(registry: &str) -> Result<String> {
    if registry.contains("://") {
        return Ok(registry.to_owned());
    }
    let path = std::path::absolute(registry).context("--docker_registry cannot be made absolute")?;
    Ok(path.display().to_string())
}

impl ImageFlags {
    pub fn logins(&self) -> Result<Logins> {
        let Some(text) = &self.docker_config else { return Ok(Logins::default()) };
        let text = access::json_or_file("docker_config", text)?;
        Logins::of_operator(&text).map_err(|reason| anyhow!("--docker_config: {reason}"))
    }

    pub fn gc(&self) -> Result<Option<ImageGc>> {
        self.image_gc_config.as_deref().map(image_gc::parse).transpose()
    }

    pub fn docker_volumes(&self) -> Result<DockerVolumeOptions> {
        let usual = DockerVolumeOptions::default();
        let dirs = self.docker_volume_plugin_dirs.as_deref().map(value::list);
        let checkpoint_dir = self.docker_volume_checkpoint_dir.as_ref().map(std::path::absolute).transpose();
        Ok(DockerVolumeOptions {
            plugin_dirs: dirs.map_or(usual.plugin_dirs, |dirs| dirs.iter().map(PathBuf::from).collect()),
            checkpoint_dir: checkpoint_dir
                .context("--docker_volume_checkpoint_dir cannot be made absolute")?,
            chown: self.docker_volume_chown,
            ..DockerVolumeOptions::default()
        })
    }

    pub fn options(&self, work_dir: &Path) -> Result<ImageOptions> {
        let providers = value::list(self.image_providers.as_deref().unwrap_or_default());
        if let Some(other) = providers.iter().find(|provider| !provider.eq_ignore_ascii_case("docker")) {
            bail!("--image_providers={other} is not supported; supported: docker");
        }
        if providers.is_empty() {
            return Ok(ImageOptions::default());
        }
        let Some(registry) = &self.docker_registry else {
            bail!("--docker_registry is missing: --image_providers requires a source of images")
        };
        let store = self.docker_store_dir.clone().unwrap_or_else(|| work_dir.join("store/docker"));
        Ok(ImageOptions {
            docker: true,
            docker_registry: origin(registry)?,
            docker_config: self.logins()?,
            docker_store_dir: std::path::absolute(store)
                .context("--docker_store_dir cannot be made absolute")?,
            backend: match self.image_provisioner_backend.as_deref() {
                Some("copy") => Some(Backend::Copy),
                Some(_) => Some(Backend::Overlay),
                None => None,
            },
        })
    }
}
