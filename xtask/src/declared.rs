//! The declared layers of crates. ARCHITECTURE.md shows them: as one row each, or, for the cores, by the folders that
//! their layers are named after.

use std::path::Path;

use anyhow::{Context, Result};

/// The layers of a crate, lowest first. A module uses modules of its own layer and of lower ones.
pub type Layers = &'static [(&'static str, &'static [&'static str])];

/// Crates whose modules have layers; other crates have few modules.
pub const DECLARED: &[(&str, Layers)] = &[
    ("client", CLIENT),
    ("container", CONTAINER),
    ("core/agent", CORE_AGENT),
    ("core/allocator", CORE_ALLOCATOR),
    ("core/master", CORE_MASTER),
    ("executors", EXECUTORS),
    ("frameworks/service", SERVICE),
    ("frameworks/service/shell", SERVICE_SHELL),
    ("frameworks/swarm", SWARM),
    ("frameworks/swarm/shell", SWARM_SHELL),
    ("shell/agent", SHELL_AGENT),
    ("shell/http", SHELL_HTTP),
    ("shell/master", SHELL_MASTER),
    ("shell/program", SHELL_PROGRAM),
];

const CLIENT: Layers = &[
    (
        "values",
        &["backoff", "credential", "duration", "endpoint", "exit", "format", "random", "shorthand", "tls"],
    ),
    ("fault", &["fault"]),
    ("connections", &["connection", "stream"]),
    ("calls", &["discovery", "pipeline"]),
    ("sessions", &["executor", "operator", "scheduler"]),
];

const CONTAINER: Layers = &[
    ("host", &["host"]),
    ("values", &["plan", "pulls", "usage"]),
    ("cgroups", &["cgroups", "isolation"]),
    ("files", &["docker_volume", "runtime_dir", "sandbox", "secrets", "stdio"]),
    ("launcher", &["launcher", "meter"]),
    ("isolators", &["isolators"]),
    ("images", &["fetcher", "images"]),
    ("docker", &["docker"]),
    ("containerizer", &["containerizer", "destroy_all"]),
];

const CORE_AGENT: Layers = &[
    ("state", &["state"]),
    ("interface", &["interface"]),
    ("context", &["agent"]),
    ("rules", &["rules"]),
    ("entities", &["entities"]),
    ("handlers", &["handlers"]),
    ("machine", &["machine"]),
];

const CORE_ALLOCATOR: Layers = &[
    (
        "values",
        &[
            "agent_spec",
            "bits",
            "claims",
            "constraints",
            "framework_spec",
            "grant",
            "held",
            "ids",
            "marks",
            "min_allocatable",
            "options",
            "order",
            "share",
            "slab",
            "tally",
        ],
    ),
    ("books", &["filter_counts", "filters", "inverse", "ledger", "slack_books"]),
    ("roles", &["booking", "borrowers", "lottery", "owners", "ranking", "tree", "walk"]),
    ("state", &["agent", "allocator", "candidates", "cycle"]),
    ("decisions", &["allocate", "lending", "loans", "moves", "offer", "quota", "recovery", "slack"]),
    ("reports", &["audit", "explain"]),
];

const CORE_MASTER: Layers = &[
    ("values", &["values"]),
    ("state", &["state"]),
    ("validate", &["validate"]),
    ("interface", &["interface"]),
    ("context", &["counting", "master"]),
    ("rules", &["rules"]),
    ("entities", &["entities"]),
    ("handlers", &["handlers"]),
    ("machine", &["machine"]),
];

const EXECUTORS: Layers = &[
    ("values", &["exit", "kill", "status", "tls"]),
    ("parts", &["activity", "checks", "machine", "process", "runner", "testing"]),
    ("executors", &["command", "container", "default", "docker"]),
];

const SERVICE: Layers = &[
    ("values", &["mustache", "options", "problem", "spec", "yaml"]),
    ("reading", &["bootstrap", "reader"]),
    ("decisions", &["parse", "plan"]),
    ("scheduler", &["scheduler"]),
];

const SERVICE_SHELL: Layers = &[
    ("values", &["bootstrap", "convert", "fault", "options"]),
    ("access", &["agents", "handle", "rivals"]),
    ("interface", &["api", "driver"]),
    ("term", &["front", "term"]),
    ("run", &["run", "standby"]),
];

const SWARM: Layers = &[
    ("values", &["address", "expression", "go", "occupant", "rejection"]),
    ("specs", &["agent", "node", "options", "res_type", "spec"]),
    ("scheduling", &["filter", "schedule", "select", "strategy", "testing"]),
    ("command line", &["manage"]),
    ("manager", &["manager"]),
    ("reports", &["info"]),
];

const SWARM_SHELL: Layers = &[
    ("values", &["access", "body", "convert", "fault", "tls", "version"]),
    ("engines", &["engine"]),
    ("interface", &["api", "driver", "guard", "handle"]),
    ("term", &["front", "term"]),
    ("run", &["election", "listen", "run"]),
];

const SHELL_AGENT: Layers = &[
    ("values", &["containers", "detect", "document", "modes", "origin", "samples", "target"]),
    ("reports", &["access", "attached", "audit", "log", "metrics"]),
    ("options", &["image_gc", "options"]),
    ("program", &["link", "program", "read", "statistics"]),
    ("interface", &["effects", "executor", "operator"]),
    ("run", &["routes", "run"]),
];

const SHELL_HTTP: Layers = &[
    ("values", &["connection", "error", "peer", "principal", "query", "rendering_threads", "socket", "tls"]),
    ("requests", &["browser", "metrics", "negotiate", "path", "queue", "rendition", "renderings"]),
    ("bodies", &["body", "link", "outgoing", "pace", "respond"]),
    ("responses", &["audit", "etag", "file", "gzip"]),
    ("exchanges", &["auth", "call", "exchange", "request"]),
    ("server", &["server"]),
];

const SHELL_MASTER: Layers = &[
    (
        "values",
        &["fault", "index", "log", "metered", "options", "pages", "roles", "slack", "throttle", "whitelist"],
    ),
    ("documents", &["document", "documents", "metrics", "read"]),
    ("access", &["access"]),
    ("program", &["audit", "explain", "front", "program", "subscribers"]),
    (
        "interface",
        &[
            "agents",
            "convert",
            "effects",
            "maintenance",
            "operator",
            "quota",
            "scheduler",
            "teardown",
            "weights",
        ],
    ),
    ("term", &["routes", "term"]),
    ("run", &["candidacy", "run"]),
];

const SHELL_PROGRAM: Layers = &[
    (
        "values",
        &[
            "acls", "classic", "document", "fault", "files", "help", "leader", "limits", "logging",
            "metrics", "system",
        ],
    ),
    ("options", &["endpoint", "operator", "options"]),
    ("process", &["process"]),
    ("routing", &["common", "firewall", "router"]),
];

/// Crates whose layers ARCHITECTURE.md shows as folders, with their content.
const SHOWN_BY_FOLDERS: [&str; 2] = ["core/agent", "core/master"];

/// Whether ARCHITECTURE.md has the row of every crate.
pub fn check_document(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let text =
        std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("cannot read ARCHITECTURE.md")?;
    for (name, layers) in DECLARED.iter().filter(|(name, _)| !SHOWN_BY_FOLDERS.contains(name)) {
        let row = row(name, layers);
        if !text.lines().any(|line| line == row) {
            problems.push(format!("ARCHITECTURE.md has no row {row}"));
        }
    }
    Ok(())
}

fn row(name: &str, layers: Layers) -> String {
    let layers: Vec<String> = layers.iter().map(|(layer, modules)| shown(layer, modules)).collect();
    format!("| `{name}` | {} |", layers.join(" <- "))
}

/// A layer that is one module of the same name is shown once.
fn shown(layer: &str, modules: &[&str]) -> String {
    let names: Vec<String> = modules.iter().map(|module| format!("`{module}`")).collect();
    match modules {
        [only] if *only == layer => format!("`{layer}`"),
        _ => format!("{layer} ({})", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_layers_and_their_modules() {
        let layers: Layers = &[("host", &["host"]), ("files", &["sandbox", "stdio"])];
        assert_eq!(row("container", layers), "| `container` | `host` <- files (`sandbox`, `stdio`) |");
    }
}
