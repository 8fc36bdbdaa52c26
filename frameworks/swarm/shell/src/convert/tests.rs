//! Messages to and from the master.

use std::time::Duration;

use framework_info::capability::Type;
use tepui_proto::mesos::v1::{Attribute, OfferID, Resource};
use tepui_resources::{Name, Revocable, Scalar, parse};
use tepui_swarm::{Command, Kind};

use super::*;

fn manage(options: &str) -> Manage {
    let arguments: Vec<String> =
        format!("manage {options} m:5050").split_whitespace().map(str::to_owned).collect();
    match Command::parse(&arguments, |_| None).expect("a command line") {
        Command::Manage(manage) => manage,
        other => panic!("{other:?}"),
    }
}

#[test]
fn revocable_capability_follows_the_option() {
    for (options, has_capability) in [
        ("", false),
        ("--cluster-opt mesos.enablerevocable=false", false),
        ("--cluster-opt mesos.enablerevocable=true", true),
        ("--cluster-opt mesos.enablerevocable=1", true),
    ] {
        let framework = framework(&manage(options), Some("f1"), "h", "root".to_owned());
        let types: Vec<_> = framework.capabilities.iter().filter_map(|it| it.r#type).collect();
        assert_eq!(types.contains(&Type::REVOCABLE_RESOURCES), has_capability, "{options}");
        assert_eq!((framework.id.value.as_str(), framework.checkpoint), ("f1", Some(true)));
    }
    let roles = framework(&manage("--cluster-opt mesos.role=a,b"), None, "h", "root".to_owned()).roles;
    assert_eq!(roles, ["a", "b"]);
}

fn attribute(name: &str, value: &str) -> Attribute {
    let mut attribute = Attribute { name: name.to_owned(), ..Default::default() };
    match value.parse::<f64>() {
        Ok(value) => attribute.scalar = value::Scalar { value, ..Default::default() }.into(),
        Err(_) => attribute.text = value::Text { value: value.to_owned(), ..Default::default() }.into(),
    }
    attribute
}

#[test]
fn offer_attributes_determine_the_engine_address() {
    let place = Place { hostname: "here".to_owned(), tls: false, socket: "/default.sock".to_owned() };
    for (hostname, attributes, address, socket) in [
        ("far", vec![], "far:2375", "/default.sock"),
        ("far", vec![("docker_port", "5001")], "far:5001", "/default.sock"),
        ("far", vec![("docker_port", "5001.7")], "far:5001", "/default.sock"),
        ("far", vec![("docker_socket", "/d.sock")], "far:2375", "/d.sock"),
        ("here", vec![("docker_socket", "/d.sock")], "unix:///d.sock", "/d.sock"),
        ("127.0.0.1", vec![("docker_socket", "/d.sock")], "unix:///d.sock", "/d.sock"),
        ("localhost", vec![("docker_port", "1"), ("docker_socket", "/d.sock")], "localhost:1", "/d.sock"),
    ] {
        let offer = WireOffer {
            id: OfferID { value: "o1".to_owned(), ..Default::default() }.into(),
            hostname: hostname.to_owned(),
            attributes: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            ..Default::default()
        };
        let found = place.offer(&offer).expect("an offer");
        let found = (found.engine.to_string(), found.socket);
        assert_eq!(found, (address.to_owned(), socket.to_owned()), "{hostname} {attributes:?}");
    }
    let wrong = WireOffer { attributes: vec![attribute("docker_port", "many")], ..Default::default() };
    assert!(place.offer(&wrong).expect_err("no port").contains("docker_port"));
}

fn launch(kind: Kind) -> Launch {
    let parsed: Resources = parse::resources("cpus:1;mem:20", "*").expect("resources").into_iter().collect();
    let revocable = match kind {
        Kind::Regular => Revocable::No,
        Kind::Revocable => Revocable::UsageSlack,
    };
    let resources: Resources = parsed.iter().map(|it| it.clone().with_revocable(revocable)).collect();
    let ports: Resources = parse::resources("ports:[31000-31000]", "*").expect("ports").into_iter().collect();
    Launch {
        task: TaskId::new("web.1"),
        agent: AgentId::new("A1"),
        offers: vec![OfferId::new("O1")],
        kind,
        resources: resources.iter().chain(ports.iter()).cloned().collect(),
        limits: vec![(Name::Mem, Scalar::from_thousandths(64_500))],
        name: Some("web".to_owned()),
        image: "busybox".to_owned(),
        socket: "/d.sock".to_owned(),
        document: r#"{"Image":"busybox"}"#.to_owned(),
        start: false,
        adopt: None,
        is_orphan: false,
        refuse: Duration::from_secs(5),
    }
}

#[test]
fn task_uses_resources_of_one_kind() {
    for (kind, is_revocable) in [(Kind::Regular, false), (Kind::Revocable, true)] {
        let call = accept(&launch(kind), "/bin/tepui", "root");
        assert_eq!(call.accept.offer_ids[0].value, "O1");
        assert_eq!(call.accept.filters.refuse_seconds, Some(5.0));
        let task = &call.accept.operations[0].launch.task_infos[0];
        let of = |it: &Resource| (it.name.clone(), it.revocable.is_set());
        let mut found: Vec<_> = task.resources.iter().map(of).collect();
        found.sort();
        let expected = [("cpus", is_revocable), ("mem", is_revocable), ("ports", false)];
        assert_eq!(found, expected.map(|(name, is)| (name.to_owned(), is)), "{kind}");
        assert_eq!(task.limits["mem"].value, 64.5);
        assert_eq!(task.labels.labels.len(), 1);
        assert_eq!(task.executor.command.arguments, ["/bin/tepui", "executor", "container"]);
        let data: ContainerTask =
            serde_json::from_slice(task.data.as_deref().unwrap_or_default()).expect("a container");
        assert_eq!((data.name.as_str(), data.label.as_str()), ("web", "com.docker.swarm.mesos.task=web.1"));
    }
}

#[test]
fn declines_without_a_time_have_the_filter_of_v1() {
    for (refuse, seconds) in [(None, None), (Some(Duration::from_secs(60)), Some(60.0))] {
        let call = decline(&[OfferId::new("O1")], refuse);
        assert_eq!(call.decline.offer_ids[0].value, "O1");
        assert_eq!(call.decline.filters.refuse_seconds, seconds);
    }
}

#[test]
fn updates_carry_the_container_that_the_executor_reports() {
    let data = Some(br#"{"id":"c1","name":"web"}"#.to_vec());
    let source = Some(task_status::Source::SOURCE_EXECUTOR);
    let found = update(&TaskStatus { data, source, ..Default::default() });
    assert_eq!(found.container, Some(("c1".to_owned(), "web".to_owned())));
    assert!(found.by_executor);
    let foreign = update(&TaskStatus { data: Some(b"[{}]".to_vec()), ..Default::default() });
    assert_eq!((foreign.container, foreign.by_executor), (None, false));
}
