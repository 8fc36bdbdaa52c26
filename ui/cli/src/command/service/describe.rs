//! `tepui service describe`: what a spec declares and the options it can be run with.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use tepui_service::options::{OptionRow, schema};
use tepui_service::spec::{PodSpec, ServiceSpec};

use super::counted;
use super::source::Source;
use crate::output::{self, printable};
use crate::table::{Cell, Table};

#[derive(Args)]
pub struct Describe {
    #[command(flatten)]
    source: Source,
    /// Print it as JSON, with the schema of the options.
    #[arg(long)]
    json: bool,
}

impl Describe {
    pub fn run(self) -> Result<ExitCode> {
        let rows = self.source.read_options()?.rows();
        let Some(spec) = self.source.read()? else { return Ok(ExitCode::FAILURE) };
        match self.json {
            true => output::json(&document(&spec, &rows))?,
            false => output::line(&page(&spec, &rows))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn document(spec: &ServiceSpec, rows: &[OptionRow]) -> Value {
    let option = |row: &OptionRow| {
        json!({"option": row.path, "variable": row.variable, "value": row.value, "default": row.is_default,
            "description": row.description})
    };
    let pods: Vec<Value> = spec.pods.iter().map(pod_document).collect();
    let options: Vec<Value> = rows.iter().map(option).collect();
    json!({"name": spec.name, "pods": pods, "options": options, "schema": schema()})
}

fn pod_document(pod: &PodSpec) -> Value {
    let tasks: Vec<&str> = pod.tasks.iter().map(|task| task.name.as_str()).collect();
    let volumes: Vec<Value> = pod
        .external_volumes
        .iter()
        .map(|volume| json!({"name": volume.key, "driver": volume.plugin, "container-path": volume.container_path}))
        .collect();
    json!({"name": pod.name, "count": pod.count, "tasks": tasks, "external-volumes": volumes})
}

fn page(spec: &ServiceSpec, rows: &[OptionRow]) -> String {
    let mut lines = vec![format!("Service {}", printable(&spec.name)), String::new()];
    for pod in &spec.pods {
        let tasks: Vec<&str> = pod.tasks.iter().map(|task| task.name.as_str()).collect();
        let count = counted(pod.count as usize, "pod");
        lines.push(printable(&format!("  {} ({count}): {}", pod.name, tasks.join(", "))));
        for volume in &pod.external_volumes {
            let names = volume.name(&spec.name, &pod.name, 0);
            lines.push(printable(&format!(
                "    external volume {} at {}, driver {}, first volume {names}",
                volume.key, volume.container_path, volume.plugin
            )));
        }
    }
    if let Some(policy) = &spec.replacement {
        lines.push(format!(
            "  failed pods are replaced after {} s, at least {} s apart",
            policy.permanent_failure_timeout_secs, policy.min_replace_delay_secs
        ));
    }
    lines.push(String::new());
    lines.push(options_table(rows));
    lines.join("\n")
}

fn options_table(rows: &[OptionRow]) -> String {
    let row = |row: &OptionRow| {
        vec![
            Cell::text(row.path),
            Cell::text(row.value.to_string()),
            Cell::text(if row.is_default { "yes" } else { "no" }),
            Cell::text(row.variable),
            Cell::text(row.description.as_str()),
        ]
    };
    let headers = ["OPTION", "VALUE", "DEFAULT", "VARIABLE", "DESCRIPTION"];
    Table::new(&headers, rows.iter().map(row).collect()).render(false)
}
