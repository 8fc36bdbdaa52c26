//! Metrics: every v1 metric exists or is documented as absent, and the Prometheus format is well-formed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tepui_e2e::{Cluster, Http, Scheduler, wait_for};

/// What a v1 master counts. `{a,b}` is each of them; names of this run are filled in for FRAMEWORK and ROLE.
const MASTER: &[&str] = &[
    "master/{uptime_secs,elected,outstanding_offers,operator_event_stream_subscribers,dropped_messages,http_cache_hits}",
    "master/slaves_{connected,disconnected,active,inactive,unreachable}",
    "master/frameworks_{connected,disconnected,active,inactive}",
    "master/tasks_{staging,starting,running,killing,unreachable,finished,failed,killed,lost,error,dropped,gone}",
    "master/tasks_gone_by_operator",
    "master/event_queue_{messages,dispatches,http_requests}",
    "master/{cpus,gpus,mem,disk}_{total,used,percent,revocable_total,revocable_used,revocable_percent}",
    "master/messages_{register_framework,reregister_framework,unregister_framework,deactivate_framework,kill_task}",
    "master/messages_{status_update_acknowledgement,operation_status_update_acknowledgement,resource_request}",
    "master/messages_{launch_tasks,decline_offers,revive_offers,suppress_offers,reconcile_operations,reconcile_tasks}",
    "master/messages_{framework_to_executor,executor_to_framework,register_slave,reregister_slave,unregister_slave}",
    "master/messages_{status_update,operation_status_update,exited_executor,update_slave,authenticate}",
    "master/{valid,invalid}_{framework_to_executor_messages,executor_to_framework_messages,status_updates}",
    "master/{valid,invalid}_{status_update_acknowledgements,operation_status_updates}",
    "master/{valid,invalid}_operation_status_update_acknowledgements",
    "master/{recovery_slave_removals,slave_registrations,slave_reregistrations,slave_removals}",
    "master/slave_removals/reason_{unhealthy,unregistered,registered}",
    "master/slave_{shutdowns,unreachable}_{scheduled,completed,canceled}",
    "master/task_error/source_master/reason_task_invalid",
    "master/operations/{total,pending,recovering,unreachable,finished,failed,error,dropped,gone_by_operator}",
    "master/operations/{reserve,unreserve,create,destroy,grow_volume,shrink_volume}/{total,pending,recovering}",
    "master/operations/{reserve,unreserve,create,destroy,grow_volume,shrink_volume}/{unreachable,finished,failed}",
    "master/operations/{reserve,unreserve,create,destroy,grow_volume,shrink_volume}/{error,dropped,gone_by_operator}",
    "master/operations/{create_disk,destroy_disk}/{total,pending,finished,failed,error,dropped}",
    "FRAMEWORK/{subscribed,calls,events,operations}",
    "FRAMEWORK/calls/{subscribe,teardown,accept,decline,revive,kill,shutdown,acknowledge,reconcile,message,request}",
    "FRAMEWORK/calls/{suppress,accept_inverse_offers,decline_inverse_offers,acknowledge_operation_status}",
    "FRAMEWORK/calls/{reconcile_operations,update_framework}",
    "FRAMEWORK/events/{subscribed,offers,inverse_offers,rescind,rescind_inverse_offer,update,message,failure,error}",
    "FRAMEWORK/events/{update_operation_status,heartbeat}",
    "FRAMEWORK/offers/{sent,accepted,declined,rescinded}",
    "FRAMEWORK/tasks/active/task_{staging,starting,running,killing,unreachable,unknown}",
    "FRAMEWORK/tasks/terminal/task_{finished,failed,killed,error,lost,dropped,gone,gone_by_operator}",
    "FRAMEWORK/operations/{launch,launch_group,reserve,unreserve,create,destroy,grow_volume,shrink_volume}",
    "FRAMEWORK/operations/{create_disk,destroy_disk}",
    "FRAMEWORK/roles/ROLE/suppressed",
    "frameworks/ops/{messages_received,messages_processed}",
    "allocator/{event_queue_dispatches,mesos/event_queue_dispatches,mesos/allocation_runs}",
    "allocator/mesos/{allocation_run_ms,allocation_run_latency_ms}",
    "allocator/mesos/allocation_run_{ms,latency_ms}/{count,max,min,p50,p90,p95,p99,p999,p9999}",
    "allocator/mesos/resources/{cpus,mem,disk}/{total,offered_or_allocated}",
    "allocator/mesos/roles/ROLE/shares/dominant",
    "allocator/mesos/offer_filters/roles/ROLE/active",
    "allocator/mesos/quota/roles/ROLE/resources/cpus/{guarantee,limit,consumed,offered_or_allocated}",
    "registrar/{queued_operations,registry_size_bytes,state_fetch_ms,state_store_ms}",
    "registrar/state_store_ms/{count,max,min,p50,p90,p95,p99,p999,p9999}",
    "registrar/log/{recovered,ensemble_size}",
    "system/{load_1min,load_5min,load_15min,cpus_total,mem_total_bytes,mem_free_bytes}",
];

/// The same of an agent.
const AGENT: &[&str] = &[
    "slave/{uptime_secs,registered,frameworks_active,executor_directory_max_allowed_age_secs,recovery_time_secs}",
    "slave/tasks_{staging,starting,running,killing,finished,failed,killed,lost,gone}",
    "slave/executors_{registering,running,terminating,terminated,preempted}",
    "slave/{cpus,gpus,mem,disk}_{total,used,percent,revocable_total,revocable_used,revocable_percent}",
    "slave/{recovery_errors,valid_status_updates,invalid_status_updates,container_launch_errors}",
    "slave/{valid_framework_messages,invalid_framework_messages}",
    "gc/path_removals_{succeeded,failed,pending}",
    "containerizer/fetcher/{task_fetches_succeeded,task_fetches_failed,cache_size_total_bytes,cache_size_used_bytes}",
    "containerizer/mesos/{container_destroy_errors,filesystem/containers_new_rootfs}",
    "containerizer/mesos/provisioner/{remove_container_errors,bind/remove_rootfs_errors}",
    "containerizer/mesos/provisioner/docker_store/image_pull_ms",
    "containerizer/docker/image_pull_ms",
    "containerizer/mesos/disk/{project_ids_total,project_ids_free}",
    "volume_gid_manager/{volume_gids_total,volume_gids_free}",
    "resource_provider_manager/{subscribed,events/subscribe,events/disconnect}",
    "resource_providers/",
    "csi_plugins/",
    "port_mapping/",
    "system/{load_1min,load_5min,load_15min,cpus_total,mem_total_bytes,mem_free_bytes}",
];

/// Names with special characters: a quote, a line feed, a backslash, and one that is equal after sanitizing.
const NAME: &str = "w\"e\\b\n/x";
const ROLES: [&str; 4] = ["eng", "eng/web", "eng_web", "eng-web"];

/// A cluster in which everything that is counted has happened once.
fn counted() -> (Cluster, Scheduler) {
    let cluster = Cluster::with(&[], &["--resources=cpus:4;mem:512;disk:100;odd-one:3;odd_one:4"]);
    let http = cluster.http();
    // Before there are offers, some of which it would rescind.
    let amounts = json!({"cpus": {"value": 1.0}});
    let config = json!({"role": ROLES[0], "guarantees": amounts, "limits": {"cpus": {"value": 4.0}}});
    let update = json!({"type": "UPDATE_QUOTA", "update_quota": {"force": true, "quota_configs": [config]}});
    assert_eq!(http.post("/api/v1", &update).status, 200);
    let mut info = Scheduler::info(ROLES[0]);
    info["name"] = json!(NAME);
    info["principal"] = json!("ops");
    info["roles"] = json!(ROLES);
    let mut scheduler = Scheduler::subscribe(&http, info);
    let offer = scheduler.offer();
    let mut invalid = Scheduler::task(&offer, "invalid", "true");
    invalid["resources"] = json!([]);
    scheduler.launch(&offer, &[Scheduler::task(&offer, "fails", "exit 1"), invalid]);
    scheduler.update("invalid", "TASK_ERROR");
    scheduler.reach("fails", "TASK_FAILED");
    // After the offer: it would get that.
    let mut other = Scheduler::info(ROLES[0]);
    other["principal"] = json!("o/ps");
    Scheduler::subscribe(&http, other);
    (cluster, scheduler)
}

#[test]
fn every_v1_metric_exists_or_is_documented_as_absent() {
    let (cluster, scheduler) = counted();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat.md");
    let compat = std::fs::read_to_string(path).expect("docs/compat.md can be read");
    let name = "w%22e%5Cb%0A%2Fx";
    let framework = format!("master/frameworks/{name}/{}", scheduler.framework_id);
    for (http, templates) in [(cluster.http(), MASTER), (cluster.agent_http(), AGENT)] {
        let known: BTreeSet<String> = wait_for("metrics", || {
            let metrics = http.get("/metrics/snapshot").json()?;
            Some(metrics.as_object()?.keys().cloned().collect())
        });
        let names = templates.iter().flat_map(|template| expanded(template));
        let names = names.map(|name| name.replace("FRAMEWORK", &framework).replace("ROLE", ROLES[0]));
        let silent: Vec<String> =
            names.filter(|name| !known.contains(name) && !compat.contains(&format!("| `{name}"))).collect();
        assert!(silent.is_empty(), "neither there nor in docs/compat.md: {silent:#?}\nthere: {known:#?}");
    }
}

/// `a{b,c}d` as `abd` and `acd`.
fn expanded(template: &str) -> Vec<String> {
    let Some((before, rest)) = template.split_once('{') else { return vec![template.to_owned()] };
    let (choices, after) = rest.split_once('}').expect("a closing brace");
    let ends = expanded(after);
    choices
        .split(',')
        .flat_map(|choice| ends.iter().map(move |end| format!("{before}{choice}{end}")))
        .collect()
}

#[test]
fn prometheus_metrics_are_well_formed() {
    let (cluster, _scheduler) = counted();
    for http in [cluster.http(), cluster.agent_http()] {
        let open = text(&http, "application/openmetrics-text;version=1.0.0");
        assert!(open.ends_with("\n# EOF\n") && open.matches("# EOF").count() == 1);
        let plain = text(&http, "text/plain");
        assert!(!plain.contains("# EOF"));
        for (text, end) in [(open, "_total"), (plain, "")] {
            let families = families(&text, end);
            let series: usize = families.values().map(BTreeSet::len).sum();
            assert!(families.len() > 50 && series >= families.len(), "{series} series");
        }
    }
}

fn text(http: &Http, accept: &str) -> String {
    let answer = http.send("GET", "/metrics", &[("Accept", accept)], b"");
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).expect("UTF-8")
}

/// The labels of each family's series. Each family occurs once, with its type, followed by its samples, each once; samples
/// of counters have a suffix after the family's name.
fn families(text: &str, counter_end: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut families: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut expected = (String::new(), String::new());
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert!(families.insert(name.to_owned(), BTreeSet::new()).is_none(), "twice: {line}");
            let end = if kind == "counter" { counter_end } else { "" };
            expected = (name.to_owned(), format!("{name}{end}"));
            assert!(kind != "counter" || expected.1.ends_with("_total"), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        let (name, labels) = series.split_once('{').map_or((series, ""), |(name, rest)| {
            (name, rest.strip_suffix('}').unwrap_or_else(|| panic!("no end of the labels: {line}")))
        });
        assert_eq!(name, expected.1, "{line}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
        assert!(are_labels(labels), "{line}");
        let series = families.get_mut(&expected.0).expect("it was declared");
        assert!(series.insert(labels.to_owned()), "twice: {line}");
    }
    families
}

/// `a="b",c="d"`, with only `\`, `"` and `n` after a backslash.
fn are_labels(mut text: &str) -> bool {
    while !text.is_empty() {
        let Some((name, rest)) = text.split_once("=\"") else { return false };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        let mut rest = rest.chars();
        loop {
            match rest.next() {
                Some('"') => break,
                Some('\\') if matches!(rest.next(), Some('\\' | '"' | 'n')) => (),
                Some('\\') | None => return false,
                Some(_) => (),
            }
        }
        text = match rest.as_str() {
            "" => "",
            more => match more.strip_prefix(',') {
                Some(more) => more,
                None => return false,
            },
        };
    }
    true
}
