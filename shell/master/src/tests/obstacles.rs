//! Obstacles between an agent and a framework in `/explain/framework`: one at a time.

use std::time::Duration;

use tepui_resources::{Format, Resources, parse};

use super::*;

/// An agent with these resources, and the framework's SUBSCRIBE with this put in.
struct Case {
    has: &'static str,
    wants: &'static str,
    reason: &'static str,
    text: &'static str,
}

const CASES: &[Case] = &[
    Case {
        has: "cpus:4;mem:1024;gpus:1",
        wants: "",
        reason: "LACKS_CAPABILITY",
        text: "1 agent: it has GPUs, and the framework lacks GPU_RESOURCES",
    },
    Case {
        has: "cpus(web):4;mem(web):1024",
        wants: "",
        reason: "RESERVED",
        text: "1 agent: free resources are reserved for role web",
    },
    Case {
        has: "cpus:0.001;mem:31",
        wants: "",
        reason: "BELOW_MIN_ALLOCATABLE",
        text: "1 agent: suitable free resources are smaller than the minimum offer",
    },
    Case {
        has: "cpus:4;mem:1024",
        wants: r#""offer_constraints":{"role_constraints":{"dev":{"groups":[{"attribute_constraints":
                  [{"selector":{"attribute_name":"rack"},"predicate":{"exists":{}}}]}]}}},"#,
        reason: "OFFER_CONSTRAINT",
        text: "1 agent: excluded by its own offer constraints",
    },
];

pub(super) async fn link_up_with(master: &RunningMaster, text: &str) -> Stream {
    let all: Resources = parse::resources(text, "*").unwrap().into_iter().collect();
    link_up_as(master, &agent_with(all.to_proto(Format::Post))).await
}

/// The framework's id and its stream.
async fn subscribe(master: &RunningMaster, wants: &str) -> (String, Stream) {
    let call = SUBSCRIBE.replacen(r#""subscribe":{"#, &format!(r#""subscribe":{{{wants}"#), 1);
    let mut events = Stream::subscribe(master, "/api/v1/scheduler", &call).await;
    let subscribed: Value = serde_json::from_str(&events.event("SUBSCRIBED").await).unwrap();
    (subscribed["subscribed"]["framework_id"]["value"].as_str().unwrap().to_owned(), events)
}

/// The answer for a framework, once `is_it` holds.
async fn explained(master: &RunningMaster, framework: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let answer = get(master, &format!("/explain/framework/{framework}")).await.body;
        let answer = serde_json::from_str::<Value>(&answer).unwrap();
        if is_it(&answer) {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

fn first_reason(answer: &Value) -> &Value {
    &answer["roles"][0]["reasons"][0]
}

#[tokio::test]
async fn every_obstacle_has_a_reason_code_and_text() {
    for case in CASES {
        let master = start().await;
        let _agent = link_up_with(&master, case.has).await;
        let (id, _events) = subscribe(&master, case.wants).await;
        let answer = explained(&master, &id, |_| true).await;
        let reason = first_reason(&answer);
        assert_eq!(
            (&reason["reason"], &reason["text"]),
            (&case.reason.into(), &case.text.into()),
            "{}",
            case.has
        );
        master.stop().await.unwrap();
    }
}

#[tokio::test]
async fn explanation_names_the_framework_holding_the_offer() {
    let master = start().await;
    let (holder, mut events) = subscribe(&master, "").await;
    let _agent = link_up(&master).await;
    events.event("OFFERS").await;
    let (id, _events) = subscribe(&master, "").await;
    let answer = explained(&master, &id, |_| true).await;
    let reason = first_reason(&answer);
    let text = reason["text"].as_str().unwrap();
    let begin = format!("1 agent: held in an outstanding offer by framework {holder} for ");
    assert_eq!(reason["reason"], "HELD_IN_OFFER");
    assert!(text.starts_with(&begin) && text.ends_with(" s"), "{text}");
    master.stop().await.unwrap();
}

#[tokio::test]
async fn explanation_counts_drained_and_unreachable_agents() {
    let mut options = Options { process: ProcessOptions::on_port(0), ..Options::default() };
    options.config.agent_reregister_timeout = Duration::from_millis(1);
    let master = run(options).await.unwrap();
    let agent = link_up(&master).await;
    let (id, mut events) = subscribe(&master, "").await;
    let offers: Value = serde_json::from_str(&events.event("OFFERS").await).unwrap();
    let agent_id = &offers["offers"]["offers"][0]["agent_id"];
    let drain = format!(r#"{{"type":"DRAIN_AGENT","drain_agent":{{"agent_id":{agent_id}}}}}"#);
    assert_eq!(post(&master, "/api/v1", "", &drain).await.status, 200);
    let answer = explained(&master, &id, |answer| first_reason(answer)["reason"] == "AGENT_INACTIVE").await;
    assert_eq!(first_reason(&answer)["text"], "1 agent: not offered (1 drained)");

    drop(agent);
    let answer = explained(&master, &id, |answer| answer["agents"]["registered"] == 0).await;
    assert_eq!(answer["agents"]["unreachable"], 1, "{answer}");
    master.stop().await.unwrap();
}
