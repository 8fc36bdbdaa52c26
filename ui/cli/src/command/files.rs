//! `tepui files`: the files of a task's sandbox.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;
use tepui_client::Fault;
use tepui_client::operator::files::FileInfo;

use super::{Cluster, block_on, sandbox};
use crate::output::{self, Tone};
use crate::table::{Cell, Table};
use crate::{amount, similar};

/// List files in the sandbox of a task.
#[derive(Args)]
pub struct Files {
    #[command(flatten)]
    cluster: Cluster,
    /// Framework of the task, if the task ID is ambiguous.
    #[arg(long)]
    framework: Option<String>,
    /// Print the entries as a JSON array.
    #[arg(long)]
    json: bool,
    /// Task ID, a prefix of it, or the task's name.
    task: String,
    /// Directory or file in the sandbox.
    #[arg(default_value = "")]
    path: String,
}

impl Files {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            let files = self.fetch().await?;
            match (self.json, files.is_empty()) {
                (true, _) => output::json(&files.iter().map(entry).collect()),
                (false, true) => output::line("empty directory"),
                (false, false) => output::line(&render(&files, output::colours())),
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// What is in the directory; the file itself if the path is one.
    async fn fetch(&self) -> Result<Vec<FileInfo>> {
        let sandbox = sandbox::find(&self.cluster, &self.task, self.framework.as_deref()).await?;
        let path = self.path.trim_matches('/');
        let full_path = format!("{}/{path}", sandbox.directory);
        let full_path = full_path.trim_end_matches('/');
        let found = match sandbox.agent.browse(full_path).await {
            Err(Fault::Refused { status: 404, .. }) => None,
            Err(Fault::Refused { status: 400, .. }) => bail!("{path:?} leads out of the sandbox"),
            outcome => Some(outcome?),
        };
        if let Some(files) = found.as_ref().filter(|files| !files.is_empty() || path.is_empty()) {
            return Ok(files.clone());
        }
        // A file is listed as an empty directory: the listing of its parent shows the difference.
        let siblings = siblings(&sandbox, full_path).await;
        if let Some(file) = siblings.iter().find(|file| file.path == full_path) {
            return Ok(if file.mode.starts_with('d') { Vec::new() } else { vec![file.clone()] });
        }
        bail!("{}", missing(path, &siblings, &self.task))
    }
}

/// The entries of the path's parent directory; empty on failure.
pub async fn siblings(sandbox: &sandbox::Sandbox, path: &str) -> Vec<FileInfo> {
    match path.rsplit_once('/') {
        Some((parent, _)) => sandbox.agent.browse(parent).await.unwrap_or_default(),
        None => Vec::new(),
    }
}

/// The error for a missing file, with similar names.
pub fn missing(path: &str, siblings: &[FileInfo], task: &str) -> String {
    let known: Vec<similar::Known> =
        siblings.iter().map(|file| similar::Known::new(name(file), "")).collect();
    similar::nothing("file", path, &known, &format!("tepui files {task}"))
}

fn render(files: &[FileInfo], colours: bool) -> String {
    let row = |file: &FileInfo| {
        let is_directory = file.mode.starts_with('d');
        let (mark, tone) = if is_directory { ("/", Tone::Heading) } else { ("", Tone::Plain) };
        vec![
            Cell::text(&file.mode),
            Cell::text(format!("{}:{}", file.uid, file.gid)),
            Cell::number(amount::bytes(file.size as f64), file.size as f64),
            Cell::text(amount::moment(file.mtime)),
            Cell::text(format!("{}{mark}", name(file))).tone(tone),
        ]
    };
    Table::new(&["MODE", "OWNER", "SIZE", "CHANGED", "NAME"], files.iter().map(row).collect()).render(colours)
}

fn name(file: &FileInfo) -> &str {
    file.path.rsplit('/').next().unwrap_or(&file.path)
}

fn entry(file: &FileInfo) -> serde_json::Value {
    json!({
        "path": file.path, "size": file.size, "mode": file.mode, "mtime": file.mtime, "uid": file.uid, "gid": file.gid,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn file(path: &str, mode: &str, size: u64) -> FileInfo {
        FileInfo {
            path: path.to_string(),
            size,
            mode: mode.to_string(),
            mtime: 1_794_774_349.0,
            uid: "root".to_string(),
            gid: "root".to_string(),
        }
    }

    #[test]
    fn a_sandbox_is_listed() {
        let files =
            [file("/w/runs/x/data\x1b[2J", "drwxr-xr-x", 4096), file("/w/runs/x/stdout", "-rw-r--r--", 5)];
        expect![[r#"
            MODE        OWNER      SIZE  CHANGED                  NAME
            drwxr-xr-x  root:root    4K  2026-11-15 20:25:49 UTC  data\u{1b}[2J/
            -rw-r--r--  root:root    5B  2026-11-15 20:25:49 UTC  stdout"#]]
        .assert_eq(&render(&files, false));
        expect![[r#"no file "stdou"; did you mean stdout? `tepui files t1` lists all"#]]
            .assert_eq(&missing("stdou", &files, "t1"));
    }
}
