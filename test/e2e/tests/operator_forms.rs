//! Content negotiation: every kind of call, on master and agent, with all relevant headers. Unsupported combinations are
//! rejected with v1's status and message.

use tepui_e2e::{Cluster, Http, Response};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";
const RECORDIO: &str = "application/recordio";

type Headers = &'static [(&'static str, &'static str)];

/// Headers; status; the Content-Type of a 200, else a part of the message.
type Case = (Headers, u16, &'static str);

const CT_JSON: (&str, &str) = ("Content-Type", JSON);
const CT_RECORDIO: (&str, &str) = ("Content-Type", RECORDIO);
const MCT_JSON: (&str, &str) = ("Message-Content-Type", JSON);
const ACCEPT_RECORDIO: (&str, &str) = ("Accept", RECORDIO);

/// The master supports two body formats, and no streamed requests.
const MASTER_PLAIN: &[Case] = &[
    (&[], 400, "Expecting 'Content-Type' to be present"),
    (&[CT_JSON], 200, JSON),
    (&[("Content-Type", "APPLICATION/json ; charset=UTF-8")], 200, JSON),
    (&[("Content-Type", "")], 415, "Expecting 'Content-Type' of application/json or application/x-protobuf"),
    (&[("Content-Type", "application/json, text/html")], 415, "'Content-Type'"),
    (&[("Content-Type", "application/*")], 415, "'Content-Type'"),
    (&[CT_RECORDIO, MCT_JSON], 415, "Expecting 'Content-Type' of application/json or application/x-protobuf"),
    (&[("Content-Type", PROTOBUF)], 400, "Failed to parse body into Call protobuf"),
    (&[CT_JSON, ("Accept", "")], 406, "Expecting 'Accept' to allow"),
    (&[CT_JSON, ("Accept", "*/*")], 200, JSON),
    (&[CT_JSON, ("Accept", "Application/*;q=0.2")], 200, JSON),
    (&[CT_JSON, ("Accept", PROTOBUF)], 200, PROTOBUF),
    (&[CT_JSON, ("Accept", "text/html, application/x-protobuf;q=0.1, */*;q=0")], 200, PROTOBUF),
    (&[CT_JSON, ("Accept", "application/x-protobuf;q=1.0, application/json;q=0.001")], 200, JSON),
    (&[CT_JSON, ("Accept", "application/json; q=0 , application/x-protobuf")], 200, PROTOBUF),
    (&[CT_JSON, ("Accept", "application/json;q=0.0")], 406, "'application/x-protobuf' or 'application/json'"),
    (&[CT_JSON, ("Accept", "text/html"), ("Accept", PROTOBUF)], 200, PROTOBUF),
    (&[CT_JSON, ("Accept", "text/html"), ("Accept", "text/plain")], 406, "'application/json'"),
    (&[CT_JSON, ACCEPT_RECORDIO], 406, "'application/x-protobuf' or 'application/json'"),
    (&[CT_JSON, ACCEPT_RECORDIO, ("Message-Accept", JSON)], 406, "'application/json'"),
    // The master has no use for these.
    (&[CT_JSON, ("Message-Accept", JSON)], 200, JSON),
    (&[CT_JSON, MCT_JSON], 200, JSON),
];

const MASTER_STREAM: &[Case] = &[
    (&[CT_JSON], 200, JSON),
    (&[CT_JSON, ("Accept", PROTOBUF)], 200, PROTOBUF),
    (&[CT_JSON, ("Accept", "application/x-protobuf, */*")], 200, JSON),
    (&[CT_JSON, ACCEPT_RECORDIO], 406, "'application/x-protobuf' or 'application/json'"),
    (&[CT_JSON, ("Accept", "text/event-stream")], 406, "'application/json'"),
    (&[CT_RECORDIO], 415, "'Content-Type'"),
    (&[], 400, "'Content-Type'"),
];

const THREE_TYPES: &str = "application/json or application/x-protobuf or application/recordio";
const NOT_STREAMING: &str = "'Message-Accept' to be not set for non-streaming responses";

const AGENT_PLAIN: &[Case] = &[
    (&[], 400, "Expecting 'Content-Type' to be present"),
    (&[MCT_JSON], 400, "Expecting 'Content-Type' to be present"),
    (&[("Content-Type", "text/html")], 415, THREE_TYPES),
    (&[CT_JSON], 200, JSON),
    (&[("Content-Type", "application/JSON;charset=utf-8")], 200, JSON),
    (&[CT_JSON, MCT_JSON], 415, "'Message-Content-Type' to be not set for non-streaming requests"),
    (&[CT_JSON, ("Accept", "text/html, text/*")], 406, THREE_TYPES),
    (&[CT_JSON, ("Accept", PROTOBUF)], 200, PROTOBUF),
    (&[CT_JSON, ("Message-Accept", JSON)], 406, NOT_STREAMING),
    (&[CT_JSON, ("Accept", JSON), ("Message-Accept", PROTOBUF)], 406, NOT_STREAMING),
    (&[CT_JSON, ACCEPT_RECORDIO], 406, "Streaming response is not supported for GET_HEALTH call"),
    (&[CT_JSON, ACCEPT_RECORDIO, ("Message-Accept", JSON)], 406, "is not supported for GET_HEALTH call"),
    (&[CT_JSON, ACCEPT_RECORDIO, ("Message-Accept", "text/html")], 406, "'Message-Accept' to allow"),
    (&[CT_JSON, ("Accept", "application/recordio, application/json;q=0.5")], 200, JSON),
    (&[CT_JSON, ACCEPT_RECORDIO, ("Accept", PROTOBUF)], 200, PROTOBUF),
    (&[CT_JSON, ("Accept", "*/*;q=0")], 406, THREE_TYPES),
    // Forms are looked at before the body is.
    (&[("Content-Type", PROTOBUF), ("Accept", "text/html")], 406, THREE_TYPES),
    (&[("Content-Type", PROTOBUF)], 400, "Failed to parse body into Call protobuf"),
];

/// For an unknown container: a 404 means that the request was parsed.
const AGENT_STREAMED_ANSWER: &[Case] = &[
    (&[CT_JSON], 404, "cannot be found"),
    (&[CT_JSON, ("Accept", JSON)], 404, "cannot be found"),
    (&[CT_JSON, ("Accept", PROTOBUF)], 404, "cannot be found"),
    (&[CT_JSON, ACCEPT_RECORDIO], 404, "cannot be found"),
    (&[CT_JSON, ACCEPT_RECORDIO, ("Message-Accept", JSON)], 404, "cannot be found"),
    (&[CT_JSON, ACCEPT_RECORDIO, ("Message-Accept", "*/*")], 404, "cannot be found"),
    (&[CT_JSON, ACCEPT_RECORDIO, ("Message-Accept", RECORDIO)], 406, "'Message-Accept' to allow"),
    (&[CT_JSON, ("Accept", PROTOBUF), ("Message-Accept", JSON)], 406, NOT_STREAMING),
    (&[CT_JSON, ("Accept", "text/plain")], 406, THREE_TYPES),
    (&[CT_RECORDIO, MCT_JSON], 415, "application/recordio is not supported for ATTACH_CONTAINER_OUTPUT call"),
];

const AGENT_STREAMED_REQUEST: &[Case] = &[
    (&[CT_RECORDIO, MCT_JSON], 404, "cannot be found"),
    (&[("Content-Type", "Application/RecordIO"), ("Message-Content-Type", "Application/JSON")], 404, "found"),
    (&[CT_RECORDIO], 400, "'Message-Content-Type' to be set for streaming requests"),
    (&[CT_RECORDIO, ("Message-Content-Type", RECORDIO)], 415, "'Message-Content-Type' of application/json"),
    (&[CT_RECORDIO, ("Message-Content-Type", PROTOBUF)], 400, "Failed to parse body into Call protobuf"),
    (&[CT_RECORDIO, MCT_JSON, ("Accept", "text/html")], 406, THREE_TYPES),
    (
        &[CT_RECORDIO, MCT_JSON, ACCEPT_RECORDIO],
        406,
        "Streaming response is not supported for ATTACH_CONTAINER_INPUT call",
    ),
    (&[CT_RECORDIO, MCT_JSON, ("Message-Accept", JSON)], 406, NOT_STREAMING),
];

const HEALTH: &str = r#"{"type":"GET_HEALTH"}"#;
const SUBSCRIBE: &str = r#"{"type":"SUBSCRIBE"}"#;
const OUTPUT: &str =
    r#"{"type":"ATTACH_CONTAINER_OUTPUT","attach_container_output":{"container_id":{"value":"none"}}}"#;
const INPUT: &str = r#"{"type":"ATTACH_CONTAINER_INPUT","attach_container_input":
    {"type":"CONTAINER_ID","container_id":{"value":"none"}}}"#;

#[test]
fn every_kind_of_call_is_negotiated() {
    let cluster = Cluster::start();
    let (master, agent) = (cluster.http(), cluster.agent_http());
    let mut wrong = Vec::new();
    for (http, cases, body) in [
        (&master, MASTER_PLAIN, HEALTH),
        (&master, MASTER_STREAM, SUBSCRIBE),
        (&agent, AGENT_PLAIN, HEALTH),
        (&agent, AGENT_STREAMED_ANSWER, OUTPUT),
        (&agent, AGENT_STREAMED_REQUEST, INPUT),
    ] {
        for (headers, status, expected) in cases {
            let is_streamed = headers
                .iter()
                .any(|(name, value)| *name == "Content-Type" && value.eq_ignore_ascii_case(RECORDIO));
            let body = if is_streamed { format!("{}\n{body}", body.len()) } else { body.to_owned() };
            let answer = answer(http, headers, &body);
            let printed = match answer.status {
                200 => answer.header("content-type").unwrap_or_default().to_owned(),
                _ => answer.text(),
            };
            let is_right = answer.status == *status && printed.contains(expected);
            let is_plain_text = answer.header("content-type") == Some("text/plain; charset=utf-8");
            if !is_right || (answer.status != 200 && !is_plain_text) {
                wrong.push(format!(
                    "{body:.40} {headers:?}: {} {printed}, not {status} {expected}",
                    answer.status
                ));
            }
        }
    }
    let nothing = answer(&agent, &[CT_RECORDIO, MCT_JSON], "");
    assert_eq!((nothing.status, &*nothing.text()), (400, "Received EOF while reading request body"));
    let alone = answer(&agent, &[CT_JSON], INPUT);
    assert_eq!(alone.status, 415, "{}", alone.text());
    assert!(alone.text().contains("'Content-Type' to be application/recordio for ATTACH_CONTAINER_INPUT"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The head of a stream is all of it that is looked at.
fn answer(http: &Http, headers: &[(&str, &str)], body: &str) -> Response {
    match body == SUBSCRIBE {
        true => http.head_of("POST", "/api/v1", headers, body.as_bytes()),
        false => http.send("POST", "/api/v1", headers, body.as_bytes()),
    }
}
