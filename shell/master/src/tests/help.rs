//! `/help`, the profiler that is not there, and the registry as operators see it.

use super::*;

#[tokio::test]
async fn help_lists_the_endpoints_of_the_master() {
    let master = start().await;
    let text = "User-Agent: curl/8\r\n";
    for (path, status, part) in [
        ("/help", 200, "> [/registrar(1)](/help/registrar(1))\n"),
        ("/help/", 200, "> [/master](/help/master)\n"),
        ("/help/master", 200, "> [/master/machine/down](/help/master/machine/down)\n"),
        ("/help/master/state", 200, "## /master/state\n\nComplete state"),
        ("/help/master/machine/down", 200, "POST starts the maintenance"),
        ("/help/version", 200, "> [/version](/help/version)\n"),
        ("/help/nope", 400, "No help available for '/nope'.\n"),
        ("/help/master/nope", 400, "No help available for '/master/nope'.\n"),
    ] {
        let answer = ask(master.address(), "GET", path, text, "").await;
        assert_eq!((answer.status, answer.body.contains(part)), (status, true), "{path}: {}", answer.body);
    }
    let page = get(&master, "/help/master").await;
    assert!(page.head.contains("content-type: text/html"), "{}", page.head);
    assert!(page.body.contains(r#"<a href="/help/master/state">/master/state</a>"#), "{}", page.body);
    let all: Value = serde_json::from_str(&get(&master, "/help?format=json").await.body).unwrap();
    let parts: Vec<_> = all["processes"].as_array().unwrap().iter().map(|part| &part["id"]).collect();
    assert!(parts.contains(&&Value::from("metrics")), "{parts:?}");
    for path in ["/profiler/start", "/profiler/stop"] {
        let answer = get(&master, path).await;
        assert_eq!((answer.status, answer.body.starts_with("Perftools is disabled.")), (400, true), "{path}");
    }
    master.stop().await.unwrap();
}

#[tokio::test]
async fn registry_endpoint_has_agents_weights_and_drains() {
    let master = start().await;
    let read = async || -> Value {
        serde_json::from_str(&get(&master, "/registrar(1)/registry").await.body).unwrap()
    };
    let new = read().await;
    assert_eq!(
        (&new["slaves"], &new["weights"]),
        (&serde_json::json!({"slaves": []}), &Value::Array(vec![]))
    );
    assert_eq!(new["master"]["info"]["port"], master.address().port());
    let _agent = link_up(&master).await;
    let id = read().await["slaves"]["slaves"][0]["info"]["id"]["value"].as_str().unwrap().to_owned();
    let weights = ask(master.address(), "PUT", "/weights", "", r#"[{"role":"dev","weight":2.0}]"#).await;
    assert_eq!(weights.status, 200, "{}", weights.body);
    let drain = format!(
        r#"{{"type":"DRAIN_AGENT","drain_agent":{{"agent_id":{{"value":"{id}"}},"max_grace_period":{{"nanoseconds":0}}}}}}"#
    );
    let drained = post(&master, "/api/v1", "", &drain).await;
    assert_eq!(drained.status, 200, "{}", drained.body);
    let registry = read().await;
    assert_eq!(registry["weights"], serde_json::json!([{"info": {"weight": 2.0, "role": "dev"}}]));
    assert_eq!(registry["minimum_capabilities"], serde_json::json!([{"capability": "AGENT_DRAINING"}]));
    let agent = &registry["slaves"]["slaves"][0];
    assert_eq!((&agent["deactivated"], &agent["info"]["hostname"]), (&Value::Bool(true), &Value::from("a1")));
    assert!(agent["drain_info"]["state"].is_string(), "{agent}");
    master.stop().await.unwrap();
}

#[tokio::test]
async fn registry_maintenance_requires_authorization() {
    let schedule =
        r#"{"windows":[{"machine_ids":[{"hostname":"a1"}],"unavailability":{"start":{"nanoseconds":1}}}]}"#;
    for (acls, lengths) in [
        ("{}", (1, 1)),
        (
            r#"{"get_maintenance_schedules":[{"principals":{"type":"ANY"},"machines":{"type":"NONE"}}]}"#,
            (0, 1),
        ),
        (
            r#"{"get_maintenance_statuses":[{"principals":{"type":"ANY"},"machines":{"type":"NONE"}}]}"#,
            (1, 0),
        ),
    ] {
        let mut options = Options { process: ProcessOptions::on_port(0), ..Options::default() };
        options.config.authorizer = crate::Authorizer::new(Some(crate::parse_acls(acls.as_bytes()).unwrap()));
        let master = run(options).await.unwrap();
        assert_eq!(post(&master, "/maintenance/schedule", "", schedule).await.status, 200);
        let registry = get(&master, "/registrar(1)/registry").await;
        let registry: Value = serde_json::from_str(&registry.body).unwrap();
        let length = |list: &Value| list.as_array().map(Vec::len);
        let shown = (length(&registry["schedules"]), length(&registry["machines"]["machines"]));
        assert_eq!(shown, (Some(lengths.0), Some(lengths.1)), "{acls}");
        master.stop().await.unwrap();
    }
}

#[tokio::test]
async fn open_metrics_format_is_negotiated() {
    let master = start().await;
    for (accept, kind, end) in [
        ("*/*", "text/plain; version=0.0.4", false),
        ("application/openmetrics-text;version=1.0.0, */*;q=0.1", "application/openmetrics-text", true),
    ] {
        let accept = format!("Accept: {accept}\r\n");
        let answer = ask(master.address(), "GET", "/metrics", &accept, "").await;
        assert!(answer.head.contains(&format!("content-type: {kind}")), "{}", answer.head);
        assert_eq!(answer.body.contains("\n# EOF\n"), end, "{}", answer.body);
    }
    master.stop().await.unwrap();
}
