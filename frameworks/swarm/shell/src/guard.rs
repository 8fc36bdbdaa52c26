//! Protection against web pages and other users of this machine: access to this API is root on every engine.
//!
//! A page of another site must neither act nor read. `Host` must be a name of this program (DNS rebinding), and a
//! request that a browser marks as coming from another site is rejected, also a read: events and upgraded streams are
//! reads. Clients that are not browsers send no such marks. `--api-enable-cors` opens the API to every page.
//!
//! Without verified certificates a client on a loopback address must be a process of root or of this process's user, as
//! on a Unix socket (`docs/adr/0010-local-callers-without-authentication.md`); `--allow-local-users` admits all.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE,
    HOST, HeaderValue, UPGRADE,
};
use http::{Method, Request, Response, StatusCode};
use tepui_http::BrowserPolicy;
use tepui_http::peer::{self, Peer};
use tepui_swarm::{Host, Manage};

use crate::body::{self, Body};
use crate::version;

#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    policy: BrowserPolicy,
    cors: bool,
    /// Every client that connects is known by its certificate, or need not be known.
    any_client: bool,
}

impl Guard {
    /// Rejects names that are none.
    pub fn of(manage: &Manage) -> Result<Self, String> {
        let advertised =
            manage.replication.iter().filter_map(|it| Some(it.advertise.rsplit_once(':')?.0.to_owned()));
        let names: Vec<String> = manage.allowed_hosts.iter().cloned().chain(advertised).collect();
        let policy = BrowserPolicy::new(&names, false)?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let policy = policy.with_own_names(None, Some(loopback), loopback);
        let is_verified = manage.tls.as_ref().is_some_and(|tls| tls.ca.is_some());
        let any_client = is_verified || manage.local_users;
        let has_tcp = manage.hosts.iter().any(|host| matches!(host, Host::Tcp(_)));
        if has_tcp && !any_client {
            let effect =
                "requests over TCP are rejected; use a Unix socket, --tlsverify or --allow-local-users";
            peer::warn_unless_supported(effect);
        }
        Ok(Self { policy, cors: manage.cors, any_client })
    }

    /// A rejection if a client that connected over TCP may not use the API.
    pub fn check_client(&self, client: SocketAddr, local: SocketAddr) -> Result<(), String> {
        match self.any_client {
            true => Ok(()),
            false => check_user(peer::find(client, local), nix::unistd::geteuid().as_raw()),
        }
    }

    /// An answer if the request is not passed on to the API: a rejection, or the permission that a page asks for.
    /// `local`: where the request arrived; none on a Unix socket, which no page can reach by a name.
    pub fn answer<B>(&self, request: &Request<B>, local: Option<SocketAddr>) -> Option<Response<Body>> {
        if self.cors {
            let is_question = request.method() == Method::OPTIONS;
            return is_question.then(|| self.with_headers(Response::new(body::empty())));
        }
        let checked = match local {
            Some(local) if !is_buildkit(request) => self.policy.check_all(request, local),
            Some(_) | None => BrowserPolicy::check_site(request.headers()),
        };
        checked.err().map(|error| rejection(error.status, &error.message))
    }

    pub fn with_headers(&self, mut response: Response<Body>) -> Response<Body> {
        if !self.cors {
            return response;
        }
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        let allowed = "Origin, X-Requested-With, Content-Type, Accept, X-Registry-Auth";
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
        let methods = "HEAD, GET, POST, DELETE, PUT, OPTIONS";
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
        response
    }
}

/// Sessions and calls of BuildKit, for which Docker's client sends an empty `Host`. Browsers send neither that nor `Upgrade: h2c`.
fn is_buildkit<B>(request: &Request<B>) -> bool {
    let is = |name, value: &str| request.headers().get(name).is_some_and(|found| found == value);
    let path = version::split(request.uri().path()).map_or(request.uri().path(), |(_, rest)| rest);
    let is_tunnel = request.method() == Method::POST && matches!(path, "/session" | "/grpc");
    is_tunnel && is(HOST, "") && is(UPGRADE, "h2c")
}

fn check_user(peer: Peer, own: u32) -> Result<(), String> {
    let user = match peer {
        Peer::Local(uid) if uid == 0 || uid == own => return Ok(()),
        Peer::Local(uid) => format!("user {uid}"),
        Peer::Remote | Peer::Unknown => "an unknown user".to_owned(),
    };
    Err(format!(
        "{user} may not use this API: access to it is root on every engine; start the manager with --tlsverify or \
         --allow-local-users"
    ))
}

pub fn rejection(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(body::full(format!("{}\n", serde_json::json!({"message": message}))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_are_rejected() {
        let local: SocketAddr = "127.0.0.1:2375".parse().expect("an address");
        for (line, on_tcp, on_unix, with_cors) in [
            ("GET /info | host: 127.0.0.1:2375", 200, 200, 200),
            ("GET /info | host: localhost:2375", 200, 200, 200),
            ("GET /info | host: docker", 400, 200, 200),
            ("GET /info | host: evil.example:2375", 400, 200, 200),
            ("GET /info | host: 127.0.0.1:2375 | origin: http://evil.example", 403, 403, 200),
            ("GET /info | host: 127.0.0.1:2375 | sec-fetch-site: cross-site", 403, 403, 200),
            ("GET /events | host: 127.0.0.1:2375 | sec-fetch-site: same-origin", 200, 200, 200),
            ("GET /containers/x/attach/ws | host: 127.0.0.1:2375 | origin: null", 403, 403, 200),
            ("POST /containers/create | host: 127.0.0.1:2375 | origin: http://127.0.0.1:2375", 200, 200, 200),
            ("POST /containers/create | host: 127.0.0.1:2375 | origin: http://127.0.0.1:8080", 403, 403, 200),
            ("POST /containers/create | host: 127.0.0.1:2375", 200, 200, 200),
            ("POST /containers/create | host: ", 400, 200, 200),
            ("POST /grpc | host:  | upgrade: h2c", 200, 200, 200),
            ("POST /v1.41/session | host:  | upgrade: h2c", 200, 200, 200),
            ("POST /containers/create | host:  | upgrade: h2c", 400, 200, 200),
            ("POST /containers/session | host:  | upgrade: h2c", 400, 200, 200),
            ("GET /grpc | host:  | upgrade: h2c", 400, 200, 200),
            ("POST /grpc | host: evil.example | upgrade: h2c", 400, 200, 200),
            ("POST /grpc | host:  | upgrade: h2c | origin: http://evil.example", 403, 403, 200),
        ] {
            let mut parts = line.split(" | ");
            let (method, target) = parts.next().and_then(|first| first.split_once(' ')).expect("a request");
            let mut request = Request::builder().method(method).uri(target);
            for (name, value) in parts.filter_map(|part| part.split_once(": ")) {
                request = request.header(name, value);
            }
            let request = request.body(()).expect("a request");
            let status = |cors: bool, local: Option<SocketAddr>| {
                let guard = Guard { cors, ..Guard::default() };
                guard.answer(&request, local).map_or(200, |answer| answer.status().as_u16())
            };
            let found = (status(false, Some(local)), status(false, None), status(true, Some(local)));
            assert_eq!(found, (on_tcp, on_unix, with_cors), "{line}");
        }
    }

    #[test]
    fn local_clients_are_root_or_the_user_of_the_manager() {
        for (peer, own, expected) in [
            (Peer::Local(0), 1000, None),
            (Peer::Local(1000), 1000, None),
            (Peer::Local(1000), 0, Some("user 1000 may not use this API")),
            (Peer::Unknown, 0, Some("an unknown user may not")),
            (Peer::Remote, 0, Some("an unknown user may not")),
        ] {
            let error = check_user(peer, own).err();
            assert_eq!(error.is_none(), expected.is_none(), "{peer:?} {own}: {error:?}");
            assert!(error.unwrap_or_default().contains(expected.unwrap_or_default()), "{peer:?} {own}");
        }
    }
}
