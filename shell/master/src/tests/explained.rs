//! Every obstacle of an offer has its own text.

use super::*;

struct Told {
    master: RunningMaster,
    framework: String,
    header: String,
}

impl Told {
    async fn scheduler(&self, call: &str) {
        let body = format!(r#"{{"framework_id":{{"value":"{}"}},{call}}}"#, self.framework);
        assert_eq!(post(&self.master, "/api/v1/scheduler", &self.header, &body).await.status, 202, "{call}");
    }

    async fn operator(&self, call: &str) {
        let answer = post(&self.master, "/api/v1", "Accept: application/json\r\n", call).await;
        assert_eq!(answer.status, 200, "{call}: {}", answer.body);
    }

    /// How it stands in its role, once `is_it` is so.
    async fn client_report(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let answer = get(&self.master, &format!("/explain/framework/{}", self.framework)).await.body;
            let client_report = serde_json::from_str::<Value>(&answer).unwrap()["roles"][0].clone();
            if is_it(&client_report) {
                return client_report;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn reason(&self, code: &str) -> String {
        let first = self.client_report(|client_report| client_report["reasons"][0]["reason"] == code).await;
        first["reasons"][0]["text"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn explanation_texts_follow_the_state_of_the_offer() {
    let master = start().await;
    let agent = link_up(&master).await;
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    let subscribed: Value = serde_json::from_str(&events.event("SUBSCRIBED").await).unwrap();
    let offers: Value = serde_json::from_str(&events.event("OFFERS").await).unwrap();
    let framework = subscribed["subscribed"]["framework_id"]["value"].as_str().unwrap().to_owned();
    let header = format!("Mesos-Stream-Id: {}\r\n", events.header("mesos-stream-id").unwrap());
    let offer = &offers["offers"]["offers"][0];
    let agent_id = &offer["agent_id"];
    let told = Told { master, framework, header };

    let decline = r#""type":"DECLINE","decline":{"filters":{"refuse_seconds":600},"offer_ids":["#;
    told.scheduler(&format!("{decline}{}]}}", offer["id"])).await;
    let text = told.reason("FILTERED").await;
    assert!(text.starts_with("1 agent: filtered for another "), "{text}");
    assert!(text.ends_with(" after it declined cpus:4; mem:1024; REVIVE removes the filter"), "{text}");

    told.scheduler(r#""type":"SUPPRESS""#).await;
    let client_report = told.client_report(|client_report| client_report["suppressed"] == true).await;
    assert_eq!(client_report["place_text"], "suppressed: the framework requested no offers in this role");

    let limits = r#"{"cpus":{"value":0},"mem":{"value":0}}"#;
    told.operator(&format!(
        r#"{{"type":"UPDATE_QUOTA","update_quota":{{"quota_configs":[{{"role":"dev","limits":{limits}}}]}}}}"#
    ))
    .await;
    told.scheduler(r#""type":"REVIVE""#).await;
    let text = told.reason("QUOTA_LIMIT").await;
    assert_eq!(text, "1 agent: role dev has reached its quota limit: cpus 0 of 0, mem 0 of 0");

    let deactivate = r#"{"type":"DEACTIVATE_AGENT","deactivate_agent":{"agent_id":"#;
    told.operator(&format!("{deactivate}{agent_id}}}}}")).await;
    let text = told.reason("AGENT_INACTIVE").await;
    assert_eq!(text, "1 agent: not offered (1 deactivated)");
    let reactivate = r#"{"type":"REACTIVATE_AGENT","reactivate_agent":{"agent_id":"#;
    told.operator(&format!("{reactivate}{agent_id}}}}}")).await;
    drop(agent);
    let text = told.reason("AGENT_INACTIVE").await;
    assert_eq!(text, "1 agent: not offered (1 not connected)");
    told.master.stop().await.unwrap();
}
