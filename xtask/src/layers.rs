//! Dependencies point one way. This file is the list of permitted ones.
//!
//! `api` <- `core` <- `client` <- `executors`, `frameworks`, `ui`; `container` uses only core/types and
//! core/resources; only shell/agent uses `container`; no crate depends on `test`. Dev-dependencies are checked too,
//! but may also name test/facilities and the test kit of outside crates.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{declared, modules, report};

/// What tests need of the machine: for the tests of every crate, and for nothing else.
const FACILITIES: &str = "test/facilities";

/// (crate's folder, folders of ours it may depend on).
const ALLOWED: &[(&str, &[&str])] = &[
    ("api/proto", &[]),
    ("core/fsm", &[]),
    ("core/types", &["api/proto", "core/fsm"]),
    ("core/authz", &[]),
    ("core/resources", &["api/proto", "core/types"]),
    ("core/allocator", &["core/fsm", "core/types", "core/resources"]),
    ("core/registry", &["api/proto", "core/fsm", "core/types", "core/resources"]),
    (
        "core/master",
        &[
            "api/proto",
            "core/fsm",
            "core/types",
            "core/authz",
            "core/resources",
            "core/allocator",
            "core/registry",
        ],
    ),
    ("core/agent", &["api/proto", "core/fsm", "core/types", "core/authz", "core/resources"]),
    ("client", &["api/proto"]),
    ("container/docker", &[]),
    ("container", &["api/proto", "core/types", "core/resources", "container/docker"]),
    ("executors", &["api/proto", "client", "container/docker"]),
    // The algebra of resources and the mechanism of machines are published crates like the client.
    ("frameworks/placement", &["core/types", "core/resources"]),
    (
        "frameworks/service",
        &["api/proto", "core/fsm", "core/types", "core/resources", "frameworks/placement"],
    ),
    ("frameworks/swarm", &["api/proto", "core/fsm", "core/types", "core/resources", "frameworks/placement"]),
    // The process around the decisions: the mechanism of shells (turns, records, sockets) and the client library, nothing of
    // the master or the agent.
    (
        "frameworks/service/shell",
        &[
            "api/proto",
            "core/fsm",
            "core/types",
            "core/resources",
            "client",
            "frameworks/placement",
            "frameworks/service",
            "shell/http",
            "shell/log",
            "shell/runtime",
            "shell/store",
        ],
    ),
    (
        "frameworks/swarm/shell",
        &[
            "api/proto",
            "core/fsm",
            "core/types",
            "core/resources",
            "client",
            "container/docker",
            "frameworks/placement",
            "frameworks/swarm",
            "shell/http",
            "shell/log",
            "shell/runtime",
            "shell/store",
        ],
    ),
    ("shell/log", &[]),
    ("shell/store", &["core/fsm"]),
    ("shell/runtime", &["core/fsm", "shell/store"]),
    ("shell/http", &["api/proto", "core/types", "core/authz"]),
    (
        "shell/program",
        &[
            "api/proto",
            "core/types",
            "core/authz",
            "core/resources",
            "shell/log",
            "shell/runtime",
            "shell/http",
            "shell/store",
        ],
    ),
    (
        "shell/master",
        &[
            "api/proto",
            "core/fsm",
            "core/types",
            "core/authz",
            "core/resources",
            "core/registry",
            "core/master",
            "shell/log",
            "shell/runtime",
            "shell/http",
            "shell/store",
            "shell/program",
            "ui/web",
        ],
    ),
    (
        "shell/agent",
        &[
            "api/proto",
            "core/fsm",
            "core/types",
            "core/authz",
            "core/resources",
            "core/agent",
            "container",
            "shell/log",
            "shell/runtime",
            "shell/http",
            "shell/store",
            "shell/program",
        ],
    ),
    ("ui/web", &[]),
    // The binary assembles the programs; everything else in it is an ordinary user of the client library.
    (
        "ui/cli",
        &[
            "api/proto",
            "client",
            "shell/log",
            "shell/master",
            "shell/agent",
            "container",
            "executors",
            "frameworks/service",
            "frameworks/service/shell",
            "frameworks/swarm",
            "frameworks/swarm/shell",
        ],
    ),
    (FACILITIES, &[]),
    (
        "test/sim",
        &[
            "api/proto",
            "core/fsm",
            "core/types",
            "core/authz",
            "core/resources",
            "core/allocator",
            "core/registry",
            "core/master",
            "core/agent",
            "client",
            "container/docker",
            "executors",
            "frameworks/swarm",
            "frameworks/swarm/shell",
            "frameworks/service",
        ],
    ),
    ("test/e2e", &["api/proto", "client"]),
    (
        "test/bench",
        &[
            "api/proto",
            "core/fsm",
            "core/types",
            "core/resources",
            "core/allocator",
            "client",
            "frameworks/service",
            "frameworks/swarm",
        ],
    ),
    ("xtask", &[]),
];

pub fn check(root: &Path) -> Result<()> {
    let metadata = cargo_metadata(root)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let mut problems = Vec::new();
    for package in packages {
        check_package(root, package, &mut problems);
    }
    for (folder, _) in ALLOWED {
        if !root.join(folder).join("Cargo.toml").exists() {
            problems.push(format!("{folder} is listed in xtask/src/layers.rs but does not exist"));
        }
    }
    modules::check(root, &mut problems)?;
    declared::check_document(root, &mut problems)?;
    report(
        &problems,
        "the layers are described in ARCHITECTURE.md; a new edge needs a reason written down there",
    )
}

fn check_package(root: &Path, package: &Value, problems: &mut Vec<String>) {
    let Some(folder) = folder_of(root, package["manifest_path"].as_str()) else { return };
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == folder) else {
        problems.push(format!("{folder} has no line in xtask/src/layers.rs"));
        return;
    };
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    for dependency in dependencies {
        let Some(path) = dependency["path"].as_str() else { continue };
        let Some(target) = relative(root, Path::new(path)) else { continue };
        let is_of_tests = dependency["kind"] == "dev" || folder.starts_with("test/");
        if !(allowed.contains(&target.as_str()) || is_of_tests && target == FACILITIES) {
            problems.push(format!("{folder} must not depend on {target}"));
        }
    }
}

fn cargo_metadata(root: &Path) -> Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    serde_json::from_slice(&output.stdout).context("cargo metadata did not answer with JSON")
}

fn folder_of(root: &Path, manifest: Option<&str>) -> Option<String> {
    relative(root, Path::new(manifest?).parent()?)
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_str()?.to_string())
}
