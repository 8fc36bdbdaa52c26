//! `tepui service list`: the services of a cluster.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::super::{Cluster, block_on};
use super::api::{api_of, services};
use crate::listing::text;
use crate::output;
use crate::table::{Cell, Table};

#[derive(Args)]
pub struct ServiceList {
    /// Print the frameworks of the services as the master gives them, as a JSON array.
    #[arg(long)]
    json: bool,
}

impl ServiceList {
    pub fn run(self, cluster: &Cluster) -> Result<ExitCode> {
        let services = block_on(services(cluster))?;
        match (self.json, services.is_empty()) {
            (true, _) => output::json(&Value::Array(services))?,
            (false, true) => eprintln!("no services; `tepui service run svc.yml` starts one"),
            (false, false) => output::line(&table(&services).render(output::colours()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(services: &[Value]) -> Table {
    let row = |service: &Value| {
        let tasks = service["tasks"].as_array().map_or(0, Vec::len);
        vec![
            Cell::text(text(service, "name")),
            Cell::text(if service["connected"] == true { "connected" } else { "disconnected" }),
            Cell::number(tasks.to_string(), tasks as f64),
            Cell::text(api_of(service).unwrap_or_default()),
            Cell::text(text(service, "id")),
        ]
    };
    Table::new(&["NAME", "SCHEDULER", "TASKS", "API", "FRAMEWORK"], services.iter().map(row).collect())
}
