//! Who answers a request: the API of this manager while it leads, else the leading manager.

use std::net::SocketAddr;
use std::sync::{Arc, RwLock};

use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tepui_swarm::EngineAddress;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::debug;

use crate::api::{Api, TUNNELS_MAX, connect};
use crate::body::{self, Body};
use crate::engine::EngineClient;
use crate::guard::Guard;
use crate::tls::Tls;

/// Marks a request that a standby passed on. Two managers that take each other for the leader must not pass it on for ever.
const PASSED_ON: HeaderName = HeaderName::from_static("x-tepui-passed-on");

/// A cheap clone.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    role: Arc<RwLock<Role>>,
    tls: Option<Tls>,
    guard: Guard,
    /// Streams through this standby to the leader.
    tunnels: Arc<Semaphore>,
}

#[derive(Clone, Debug)]
enum Role {
    Leader(Api),
    /// With the leader, as far as it is known.
    Standby(Option<EngineClient>),
}

impl Front {
    pub fn standby(tls: Option<Tls>, guard: Guard) -> Self {
        let tunnels = Arc::new(Semaphore::new(TUNNELS_MAX));
        Self { role: Arc::new(RwLock::new(Role::Standby(None))), tls, guard, tunnels }
    }

    pub fn lead(&self, api: Api) {
        self.set(Role::Leader(api));
    }

    /// `leader`: the address that it advertises.
    pub fn stand_by(&self, leader: Option<Vec<u8>>) {
        let address = leader.and_then(|leader| {
            let text = String::from_utf8(leader).ok()?;
            let (host, port) = text.rsplit_once(':')?;
            Some(EngineAddress::Tcp { host: host.to_owned(), port: port.parse().ok()? })
        });
        if let Role::Standby(Some(client)) = &*self.role()
            && Some(client.address()) == address.as_ref()
        {
            return;
        }
        debug!(?address, "standby");
        self.set(Role::Standby(address.map(|address| EngineClient::new(address, self.tls.clone()))));
    }

    /// Whether a client that connected over TCP may use the API at all.
    pub fn check_client(&self, client: SocketAddr, local: SocketAddr) -> Result<(), String> {
        self.guard.check_client(client, local)
    }

    /// `local`: where the request arrived; none on a Unix socket.
    pub async fn respond(&self, request: Request<Incoming>, local: Option<SocketAddr>) -> Response<Body> {
        if let Some(answer) = self.guard.answer(&request, local) {
            return answer;
        }
        let role = self.role().clone();
        let response = match role {
            Role::Leader(api) => api.respond(request).await,
            Role::Standby(Some(leader)) if !request.headers().contains_key(PASSED_ON) => {
                match self.admit_tunnel(&request) {
                    Ok(permit) => pass_on(&leader, request, permit).await,
                    Err(message) => failed(&message),
                }
            }
            Role::Standby(_) => failed("no manager leads at present; try again"),
        };
        self.guard.with_headers(response)
    }

    /// A request that may become a stream takes one of a limited number of permits.
    fn admit_tunnel<B>(&self, request: &Request<B>) -> Result<Option<OwnedSemaphorePermit>, String> {
        if !request.headers().contains_key(header::UPGRADE) {
            return Ok(None);
        }
        let permit = self.tunnels.clone().try_acquire_owned();
        permit.map(Some).map_err(|_| format!("{TUNNELS_MAX} streams are attached already; try again later"))
    }

    fn role(&self) -> std::sync::RwLockReadGuard<'_, Role> {
        self.role.read().expect("no code panics while it holds this lock")
    }

    fn set(&self, role: Role) {
        *self.role.write().expect("no code panics while it holds this lock") = role;
    }
}

/// The request as it is, to the leader; its answer as it is, also as an upgraded stream.
async fn pass_on(
    leader: &EngineClient,
    mut request: Request<Incoming>,
    permit: Option<OwnedSemaphorePermit>,
) -> Response<Body> {
    let client = hyper::upgrade::on(&mut request);
    let (mut head, body) = request.into_parts();
    let is_info = head.uri.path().ends_with("/info") && head.method == Method::GET;
    if let Some(path) = head.uri.path_and_query() {
        head.uri = path.clone().into();
    }
    // The leader checks that it is meant.
    if let Ok(host) = HeaderValue::from_str(&leader.address().to_string()) {
        head.headers.insert(header::HOST, host);
    }
    head.headers.insert(PASSED_ON, HeaderValue::from_static("1"));
    let mut answer = match leader.send(Request::from_parts(head, body::incoming(body))).await {
        Ok(answer) => answer,
        Err(fault) => return failed(&format!("cannot reach the leading manager: {fault}")),
    };
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let upgraded = hyper::upgrade::on(&mut answer);
        // Ends with either side.
        tokio::spawn(async move {
            connect(client, upgraded).await;
            drop(permit);
        });
        let (head, _) = answer.into_parts();
        return Response::from_parts(head, body::empty());
    }
    let (mut head, body) = answer.into_parts();
    if !is_info || !head.status.is_success() {
        return Response::from_parts(head, body::incoming(body));
    }
    match leader.collect(body).await {
        Ok(info) => {
            head.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(head, body::full(of_replica(&info, &leader.address().to_string())))
        }
        Err(fault) => failed(&format!("cannot reach the leading manager: {fault}")),
    }
}

/// What the leader says of the cluster, with the role of this manager.
fn of_replica(info: &[u8], leader: &str) -> Vec<u8> {
    let Ok(mut answer) = serde_json::from_slice::<Value>(info) else { return info.to_vec() };
    if let Some(rows) = answer.get_mut("SystemStatus").and_then(Value::as_array_mut) {
        rows.retain(|row| row[0] != "Role");
        rows.splice(0..0, [json!(["Role", "replica"]), json!(["Primary", leader])]);
    }
    answer.to_string().into_bytes()
}

fn failed(message: &str) -> Response<Body> {
    let mut response = Response::new(body::full(json!({"message": message}).to_string()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standby_names_its_own_role() {
        let info =
            json!({"NCPU": 4, "SystemStatus": [["Role", "primary"], ["Strategy", "spread"]]}).to_string();
        let shown: Value = serde_json::from_slice(&of_replica(info.as_bytes(), "h:1")).expect("JSON");
        let rows = json!([["Role", "replica"], ["Primary", "h:1"], ["Strategy", "spread"]]);
        assert_eq!(shown, json!({"NCPU": 4, "SystemStatus": rows}));
        for hostile in ["{", "[]", "5", r#"{"SystemStatus":[1]}"#] {
            of_replica(hostile.as_bytes(), "h:1");
        }
    }

    #[test]
    fn streams_through_a_standby_are_limited() {
        let front = Front::standby(None, Guard::default());
        let attach =
            Request::post("/containers/c/attach").header("upgrade", "tcp").body(()).expect("a request");
        let held: Vec<_> = (0..TUNNELS_MAX).map(|_| front.admit_tunnel(&attach).expect("a permit")).collect();
        assert!(front.admit_tunnel(&attach).expect_err("one too many").contains("already"));
        assert!(front.admit_tunnel(&Request::new(())).is_ok_and(|permit| permit.is_none()));
        drop(held);
        assert!(front.admit_tunnel(&attach).is_ok());
    }
}
