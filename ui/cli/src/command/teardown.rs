//! `tepui teardown`: removes a framework and kills its tasks.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use tepui_client::shorthand::framework_id;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{Teardown as Body, Type};

use super::{Cluster, block_on, find};
use crate::confirm::{Confirm, done};
use crate::listing::{lists, text};

/// Tear down a framework: kill its tasks and remove it.
#[derive(Args)]
pub struct Teardown {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    confirm: Confirm,
    /// Framework ID, a suffix of it, or its name.
    framework: String,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl Teardown {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            let framework = find::framework(&self.cluster, &self.framework).await?;
            let (id, name) = (text(&framework, "id"), text(&framework, "name"));
            let tasks = lists(&framework, &["tasks"]).count();
            self.confirm.require(&format!(
                "Framework {id} ({name}) will be torn down and its {tasks} tasks killed."
            ))?;
            let body = Body { framework_id: framework_id(id).into(), ..Default::default() };
            let call = Call { r#type: Some(Type::TEARDOWN), teardown: body.into(), ..Default::default() };
            self.cluster.change(&call).await?;
            done(
                self.json,
                &json!({"framework_id": id, "done": "torn down"}),
                &format!("tore down framework {id}"),
            )
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
