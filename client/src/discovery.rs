//! The leader by etcd: the leading master's key holds its MasterInfo as JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use tepui_proto::mesos::v1::MasterInfo;

use crate::connection::{self, Connection, Request};
use crate::endpoint::{Endpoint, Etcd, Masters};
use crate::fault::Fault;
use crate::format::Format;

/// The next target: the leader if known, else the next of the masters, else the leader named by etcd.
pub(crate) async fn target(masters: &mut Masters) -> Result<Endpoint, Fault> {
    let member = masters.target().clone();
    let Some(Etcd { prefix, login }) = masters.unresolved() else { return Ok(member) };
    let mut connection = Connection::to_etcd(member.clone());
    let mut request =
        question("kv/range", &json!({"key": BASE64_STANDARD.encode(format!("/{prefix}/leader"))}));
    if let Some((user, password)) = login {
        let login = question("auth/authenticate", &json!({"name": user, "password": password}));
        let answer = connection::body_of(&member, connection.send(&login).await?).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        request.headers.extend(answer["token"].as_str().map(|token| (AUTHORIZATION, token.to_owned())));
    }
    let body = connection::body_of(&member, connection.send(&request).await?).await?;
    let leader = read(&body).ok_or_else(|| Fault::Refused {
        status: 503,
        message: format!("etcd at {member} has no leading master under /{prefix}"),
    })?;
    masters.found(leader.clone());
    Ok(leader)
}

fn question(path: &str, body: &Value) -> Request {
    Request::post(format!("/v3/{path}"), Format::Json, body.to_string().into_bytes())
}

/// The leader's address in what etcd answered.
fn read(answer: &[u8]) -> Option<Endpoint> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let value = BASE64_STANDARD.decode(answer["kvs"][0]["value"].as_str()?).ok()?;
    let info: MasterInfo = tepui_proto::json::from_slice(&value).ok()?;
    let host = info.hostname.as_deref().or(info.address.ip.as_deref())?;
    let port = u16::try_from(info.port).ok()?;
    Some(Endpoint { host: host.to_owned(), port, prefix: String::new(), secure: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leader_is_parsed_from_an_etcd_response() {
        let info = BASE64_STANDARD.encode(r#"{"id":"m","ip":1,"port":5050,"hostname":"h"}"#);
        let answer = json!({"kvs": [{"key": "x", "value": info}]}).to_string();
        assert_eq!(read(answer.as_bytes()).map(|leader| leader.to_string()).as_deref(), Some("h:5050"));
        for nothing in ["{}", "what", r#"{"kvs":[{"value":"e30="}]}"#] {
            assert_eq!(read(nothing.as_bytes()), None, "{nothing}");
        }
    }
}
