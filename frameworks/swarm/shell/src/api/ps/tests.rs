//! Tables: parameters of `docker ps` and the names that it shows.

use serde_json::json;
use tepui_swarm::{Occupant, Phase};

use super::*;
use crate::api::row::Place;

/// Name, engine, state, status, created.
const CONTAINERS: [(&str, &str, &str, &str, u64); 6] = [
    ("web", "node-0", "running", "Up 5 minutes (healthy)", 1),
    ("web2", "node-1", "running", "Up 4 minutes", 2),
    ("batch", "node-0", "exited", "Exited (0) 1 second ago", 3),
    ("crash", "node-1", "exited", "Exited (137) 1 second ago", 4),
    ("idle", "node-0", "created", "Created", 5),
    ("hung", "node-2", "running", "Up 3 minutes", 6),
];

fn container(name: &str, created: u64) -> Container {
    let occupant = Occupant { id: format!("{created:064x}"), name: name.into(), ..Occupant::default() };
    Container {
        task: name.into(),
        agent: "a".into(),
        revocable: false,
        cpus_thousandths: 0,
        memory_bytes: 0,
        phase: Phase::Created,
        occupant,
        body: String::new(),
        created_nanos: created * 1_000_000_000,
        restarted: false,
        started: false,
    }
}

fn row(name: &str, engine: &str, state: &str, status: &str, created: u64) -> Row {
    let kind = if name.starts_with("web") { "regular" } else { "revocable" };
    let listed = json!({
        "Id": format!("{created:064x}"), "Names": [format!("/{name}")], "Image": "busybox", "ImageID": "sha256:0123456789abcdef",
        "Created": created, "State": state, "Status": status, "Labels": {"res-type": kind, "app": name},
        "Ports": [{"IP": "0.0.0.0", "PrivatePort": 80, "PublicPort": 31000 + created, "Type": "tcp"}],
        "Mounts": [{"Name": format!("data-{name}"), "Destination": "/data"}],
        "NetworkSettings": {"Networks": {"bridge": {"NetworkID": "n1"}}},
    });
    Row::of_listed(&listed, &Place { engine, ip: "10.0.0.1" }).expect("a row")
}

fn shown(query: &str) -> Result<String, String> {
    let ps = Ps::parse(&Query::parse(Some(query))).map_err(|error| error.message)?;
    let all: Vec<(Container, Row, &str)> = CONTAINERS
        .iter()
        .map(|(name, engine, state, status, created)| {
            (container(name, *created), row(name, engine, state, status, *created), *engine)
        })
        .collect();
    let entries = all.iter().map(|(container, row, engine)| Entry {
        container,
        row,
        engine: [engine, "ID"],
        is_healthy: *engine != "node-2",
    });
    let created =
        |name: &str| all.iter().find(|(it, ..)| it.occupant.name == name).map(|(it, ..)| it.created_nanos);
    let names: Vec<String> =
        ps.select(entries, created).iter().map(|it| it.container.occupant.name.clone()).collect();
    Ok(names.join(" "))
}

fn filters(document: serde_json::Value) -> String {
    format!("filters={}", super::super::route::escape(&document.to_string()))
}

#[test]
fn parameters_choose_rows() {
    for (query, expected) in [
        ("", "web2 web"),
        ("all=1", "hung idle crash batch web2 web"),
        ("limit=2", "hung idle"),
        ("limit=-1", "web2 web"),
        ("limit=0", "web2 web"),
        ("before=crash", "batch web2 web"),
        ("since=crash", "hung idle"),
    ] {
        assert_eq!(shown(query).as_deref(), Ok(expected), "{query}");
    }
}

#[test]
fn filters_choose_rows() {
    for (document, expected) in [
        (json!({"name": ["web"]}), "web2 web"),
        (json!({"name": ["^web$"]}), "web"),
        (json!({"name": ["^/web$"]}), "web"),
        (json!({"name": ["node-1/web"]}), "web2"),
        (json!({"name": ["^/node-1/web2$"]}), "web2"),
        (json!({"id": [format!("{:064x}", 1)]}), "web"),
        (json!({"id": ["^0"]}), "web2 web"),
        (json!({"status": ["exited"]}), "crash batch"),
        (json!({"status": {"exited": true, "created": true}}), "idle crash batch"),
        (json!({"status": ["running"]}), "hung web2 web"),
        (json!({"exited": ["137"]}), "crash"),
        (json!({"exited": ["0", "137"]}), "crash batch"),
        (json!({"label": ["res-type=regular"]}), "web2 web"),
        (json!({"label": ["res-type=regular", "app=web"]}), "web"),
        (json!({"label": ["res-type=revocable"], "status": ["created"]}), "idle"),
        (json!({"node": ["node-0"]}), "web"),
        (json!({"node": ["node-0", "node-1"]}), "web2 web"),
        (json!({"node": ["node-9"]}), ""),
        (json!({"volume": ["data-web"]}), "web"),
        (json!({"volume": ["node-0/data-web"]}), "web"),
        (json!({"volume": ["/data"]}), "web2 web"),
        (json!({"network": ["bridge"]}), "web2 web"),
        (json!({"network": ["n1"]}), "web2 web"),
        (json!({"network": ["other"]}), ""),
        (json!({"health": ["healthy"]}), "web"),
        (json!({"health": ["none"]}), "web2"),
        (json!({"before": ["crash"]}), "batch web2 web"),
        (json!({"since": ["crash"], "before": ["hung"]}), "idle"),
        (json!({"ancestor": ["busybox"]}), "web2 web"),
        (json!({"ancestor": ["busybox:latest"]}), "web2 web"),
        (json!({"ancestor": ["0123456789ab"]}), "web2 web"),
        (json!({"ancestor": ["alpine"]}), ""),
        (json!({"publish": ["31001"]}), "web"),
        (json!({"publish": ["31001-31002/tcp"]}), "web2 web"),
        (json!({"expose": ["80/udp"]}), ""),
        (json!({"is-task": ["false"]}), "web2 web"),
        (json!({"is-task": ["true"]}), ""),
    ] {
        assert_eq!(shown(&filters(document.clone())).as_deref(), Ok(expected), "{document}");
    }
}

#[test]
fn wrong_filters_are_rejected() {
    for (document, expected) in [
        (json!({"colour": ["red"]}), "Invalid filter 'colour'"),
        (json!({"status": ["gone"]}), "Invalid filter 'status=gone'"),
        (json!({"health": ["ill"]}), "Invalid filter 'health=ill'"),
        (json!({"exited": ["x"]}), "Invalid filter 'exited=x'"),
        (json!({"name": ["("]}), "Invalid filter 'name=('"),
        (json!({"name": ["(((a{1000}){1000}){1000})"]}), "Invalid filter 'name="),
    ] {
        let error = shown(&filters(document.clone())).expect_err("an error");
        assert!(error.starts_with(expected), "{document}: {error}");
    }
}
