//! `tepui teardown`: a framework ends, with all its tasks.

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

/// End a framework: its tasks are killed, and it cannot come back.
#[derive(Args)]
pub struct Teardown {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    confirm: Confirm,
    /// The framework: its id, the end of it, or its name.
    framework: String,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
}

impl Teardown {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            let framework = find::framework(&self.cluster, &self.framework).await?;
            let (id, name) = (text(&framework, "id"), text(&framework, "name"));
            let tasks = lists(&framework, &["tasks"]).count();
            self.confirm.ask(&format!("Framework {id} ({name}) ends, and its {tasks} tasks are killed."))?;
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
