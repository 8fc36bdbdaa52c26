//! Which pages of other origins may read: those of the master, which show the logs of sandboxes.
//!
//! Only for reading (GET), only for the addresses under which the master is known: a page from elsewhere in the same
//! browser gets nothing.

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue, ORIGIN, VARY};
use http::{HeaderMap, Method};
use tepui_http::Response;
use tepui_proto::mesos::v1 as pb;

/// Adds what lets the master's page read this answer.
pub(crate) fn allow(
    response: &mut Response,
    method: &Method,
    headers: &HeaderMap,
    named: &[String],
    master: Option<&pb::MasterInfo>,
) {
    if *method != Method::GET {
        return;
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = headers.get(ORIGIN) else { return };
    if origin.to_str().is_ok_and(|origin| is_masters(origin, named, master)) {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
}

fn is_masters(origin: &str, named: &[String], master: Option<&pb::MasterInfo>) -> bool {
    let Some((host, port)) =
        split(origin.strip_prefix("http://").or(origin.strip_prefix("https://")).unwrap_or(""))
    else {
        return false;
    };
    let mut known: Vec<(String, u16)> = named.iter().filter_map(|one| split(one)).collect();
    if let Some(info) = master {
        let port = u16::try_from(info.port).unwrap_or_default();
        let names = [info.hostname.clone(), info.address.ip.clone(), info.address.hostname.clone()];
        known.extend(names.into_iter().flatten().map(|name| (name, port)));
    }
    known.iter().any(|(name, known_port)| {
        *known_port == port && (*name == host || is_loopback(name) && is_loopback(&host))
    })
}

fn split(host_port: &str) -> Option<(String, u16)> {
    let (host, port) = host_port.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

/// The names of this machine itself, which people use for each other.
fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cors_allows_only_origins_of_the_master() {
        let master = pb::MasterInfo {
            hostname: Some("m1.example".into()),
            port: 5050,
            address: pb::Address { ip: Some("10.0.0.1".into()), ..Default::default() }.into(),
            ..Default::default()
        };
        let named = ["127.0.0.1:5050".to_owned()];
        for (origin, expected) in [
            ("http://127.0.0.1:5050", true),
            ("http://localhost:5050", true),
            ("http://m1.example:5050", true),
            ("https://10.0.0.1:5050", true),
            ("http://localhost:8080", false),
            ("http://evil.example:5050", false),
            ("http://evil.example", false),
            ("null", false),
        ] {
            assert_eq!(is_masters(origin, &named, Some(&master)), expected, "{origin}");
        }
        assert!(!is_masters("http://localhost:5050", &[], None));
    }
}
