//! `tepui prune-images`: images that no container uses, removed from an agent.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use tepui_client::v1::agent::Call;
use tepui_client::v1::agent::call::{PruneImages as Prune, Type};
use tepui_client::v1::{Image, image};

use super::{Cluster, block_on, find, sandbox};
use crate::confirm::done;
use crate::listing::text;

/// Remove images that no container uses from an agent; they are pulled again when needed.
#[derive(Args)]
pub struct PruneImages {
    #[command(flatten)]
    cluster: Cluster,
    /// Image to keep: NAME[:TAG]; may be repeated.
    #[arg(long, value_name = "IMAGE")]
    keep: Vec<String>,
    /// Agent ID, a suffix of it, or its hostname.
    agent: String,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl PruneImages {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            let agent = find::agent(&self.cluster, &self.agent).await?;
            let id = text(&agent, "id");
            let client = sandbox::client(&self.cluster, &agent)?;
            client
                .agent(&self.call())
                .await
                .with_context(|| format!("agent {id} did not prune its images"))?;
            let said = json!({"agent_id": id, "done": "pruned images"});
            done(self.json, &said, &format!("pruned images of agent {id}"))
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn call(&self) -> Call {
        let image = |name: &String| Image {
            r#type: image::Type::DOCKER,
            docker: image::Docker { name: name.clone(), ..Default::default() }.into(),
            ..Default::default()
        };
        let excluded_images = self.keep.iter().map(image).collect();
        let prune = Prune { excluded_images, ..Default::default() };
        Call { r#type: Some(Type::PRUNE_IMAGES), prune_images: prune.into(), ..Default::default() }
    }
}
