//! Protection against web pages of other sites that use a visitor's browser to reach this program.
//!
//! DNS rebinding: a foreign name that resolves to this program's address makes a foreign page same-origin, so `Host`
//! must be a name of this program. Cross-site requests: a foreign page can send forms and other simple requests with
//! the visitor's credentials, so a request that may change state is rejected when the browser marks it as coming from
//! another site. JSONP hands documents to any page that includes them as a script, so it is off by default.
//! Clients that are not browsers send none of the marks and pass.
//!
//! Never here: authentication and authorization of the sender.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{HOST, HeaderMap, ORIGIN};
use http::uri::Authority;
use http::{HeaderName, Method, StatusCode};

use crate::query::Query;
use crate::{HttpError, advertised_ip};

/// Fetch metadata: how the page that sent a request relates to its target. Pages cannot set it themselves.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The name that resolves to loopback everywhere.
const LOCALHOST: &str = "localhost";

/// Checks of requests from browsers. A cheap clone; the default allows the names of loopback only.
#[derive(Clone, Debug, Default)]
pub struct BrowserPolicy {
    hosts: Arc<AllowedHosts>,
    jsonp: bool,
}

/// Hosts, without ports, that requests may name in `Host`.
#[derive(Clone, Debug, Default)]
struct AllowedHosts {
    any: bool,
    names: BTreeSet<String>,
    /// With a leading dot: any name below.
    suffixes: Vec<String>,
}

impl BrowserPolicy {
    /// `allowed`: names, addresses, `.domain` for every name below a domain, or `*` for any.
    pub fn new(allowed: &[String], jsonp: bool) -> Result<Self, String> {
        let mut hosts = AllowedHosts::default();
        for entry in allowed {
            hosts.add(entry)?;
        }
        Ok(Self { hosts: Arc::new(hosts), jsonp })
    }

    /// Adds the names and addresses of a program that listens on `bound`.
    pub fn with_own_names(self, hostname: Option<&str>, advertised: Option<IpAddr>, bound: IpAddr) -> Self {
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let ip = advertised.unwrap_or_else(|| advertised_ip(bound));
        let names = [ip.to_string(), bound.to_string(), machine];
        self.with_names(names.into_iter().chain(hostname.map(str::to_owned)))
    }

    fn with_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        let hosts = Arc::make_mut(&mut self.hosts);
        hosts.names.extend(names.into_iter().map(|name| normalized(&name)));
        self
    }

    /// As `check`, for a program whose answers a page of another site must not even cause: reads are rejected too.
    pub fn check_all<B>(&self, request: &http::Request<B>, local: SocketAddr) -> Result<(), HttpError> {
        self.check(request, local)?;
        check_site(request.headers())
    }

    /// Rejects a request that a browser sent for a page of another site, whatever host it names.
    pub fn check_site(headers: &HeaderMap) -> Result<(), HttpError> {
        check_site(headers)
    }

    /// Rejects a request that a page of another site may have caused. `local` is the address it arrived at.
    pub(crate) fn check<B>(&self, request: &http::Request<B>, local: SocketAddr) -> Result<(), HttpError> {
        let host = host_of(request)?;
        if !self.hosts.contain(host.host(), local.ip()) {
            return Err(HttpError::bad_request(format!(
                "Host '{host}' is not a name of this program; if it should be, add it to --allowed_hosts"
            )));
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if !is_read {
            check_site(request.headers())?;
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        match query.get("jsonp").is_some() && !self.jsonp {
            true => Err(HttpError::new(StatusCode::FORBIDDEN, "JSONP is disabled; --jsonp enables it")),
            false => Ok(()),
        }
    }
}

impl AllowedHosts {
    fn add(&mut self, entry: &str) -> Result<(), String> {
        let name = entry.strip_prefix('.').unwrap_or(entry);
        let is_valid = name.parse::<IpAddr>().is_ok()
            || (!name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')));
        match (entry, is_valid) {
            ("*", _) => self.any = true,
            (_, false) => {
                return Err(format!(
                    "'{entry}' is not a host name, an address, '.domain' or '*' (without a port)"
                ));
            }
            (_, true) if entry.starts_with('.') => self.suffixes.push(normalized(entry)),
            (_, true) => _ = self.names.insert(normalized(entry)),
        }
        Ok(())
    }

    /// `host` as an authority has it: IPv6 addresses in brackets.
    fn contain(&self, host: &str, local: IpAddr) -> bool {
        let name = normalized(host);
        let is_own = match name.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback() || ip.to_canonical() == local.to_canonical(),
            Err(_) => name == LOCALHOST,
        };
        let is_below = |suffix: &String| name.len() > suffix.len() && name.ends_with(suffix.as_str());
        self.any || is_own || self.names.contains(&name) || self.suffixes.iter().any(is_below)
    }
}

/// Rejects a request that a browser sent for a page of another site.
pub(crate) fn check_site(headers: &HeaderMap) -> Result<(), HttpError> {
    let rejected = |mark: &str| {
        let message = format!("Requests of other sites' pages are rejected ({mark})");
        Err(HttpError::new(StatusCode::FORBIDDEN, message))
    };
    // More reliable than `Origin`: it survives a proxy that changes `Host`.
    if headers.contains_key(SEC_FETCH_SITE) {
        let is_ours = |site: &http::HeaderValue| site == "same-origin" || site == "none";
        return match headers.get_all(SEC_FETCH_SITE).iter().all(is_ours) {
            true => Ok(()),
            false => rejected("Sec-Fetch-Site"),
        };
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_same = |origin: &http::HeaderValue| {
        let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        authority.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
    };
    match headers.get_all(ORIGIN).iter().all(is_same) {
        true => Ok(()),
        false => rejected("Origin"),
    }
}

/// The one host that a request names.
fn host_of<B>(request: &http::Request<B>) -> Result<Authority, HttpError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(HttpError::bad_request("Expecting exactly one 'Host' header"));
    };
    let host = Authority::try_from(host.as_bytes()).ok().filter(|host| !host.as_str().contains('@'));
    let host = host.ok_or_else(|| HttpError::bad_request("Expecting 'Host' to be a name or an address"))?;
    match request.uri().authority() {
        Some(target) if *target != host => {
            Err(HttpError::bad_request("Expecting 'Host' and the request target to name the same host"))
        }
        Some(_) | None => Ok(host),
    }
}

/// In lower case, without brackets and without the dot of a complete name.
fn normalized(name: &str) -> String {
    let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request written as `METHOD TARGET | header: value | …`.
    fn request(line: &str) -> http::Request<()> {
        let mut parts = line.split(" | ");
        let (method, target) = parts.next().and_then(|first| first.split_once(' ')).unwrap();
        let mut request = http::Request::builder().method(method).uri(target);
        for part in parts {
            let (name, value) = part.split_once(": ").unwrap();
            request = request.header(name, value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn requests_of_other_sites_are_rejected() {
        let allowed = ["proxy.example", ".corp.example", "192.0.2.9"].map(String::from);
        let policy = BrowserPolicy::new(&allowed, false).unwrap().with_names(["m1.example".to_string()]);
        let local = "192.0.2.1:5050".parse().unwrap();
        for (line, expected) in [
            ("GET /state | host: m1.example:5050", 200),
            ("GET /state | host: M1.Example.", 200),
            ("GET /state | host: localhost:5050", 200),
            ("GET /state | host: 127.0.0.1:5050", 200),
            ("GET /state | host: 127.9.9.9", 200),
            ("GET /state | host: [::1]:5050", 200),
            ("GET /state | host: [::ffff:192.0.2.1]", 200),
            ("GET /state | host: 192.0.2.1:5050", 200),
            ("GET /state | host: 192.0.2.9", 200),
            ("GET /state | host: proxy.example", 200),
            ("GET /state | host: a.b.corp.example", 200),
            ("GET http://m1.example/state | host: m1.example", 200),
            // Rebinding, and what servers and proxies may read differently.
            ("GET /state | host: evil.example:5050", 400),
            ("GET /state | host: corp.example", 400),
            ("GET /state | host: .corp.example", 400),
            ("GET /state | host: localhost.evil.example", 400),
            ("GET /state | host: 192.0.2.2", 400),
            ("GET /state | host: m1.example@evil.example", 400),
            ("GET /state | host: evil.example@m1.example", 400),
            ("GET /state | host: m1.example/../", 400),
            ("GET /state | host: ", 400),
            ("GET /state", 400),
            ("GET /state | host: m1.example | host: m1.example", 400),
            ("GET http://evil.example/state | host: m1.example", 400),
            // Cross-site requests.
            ("POST /teardown | host: m1.example", 200),
            ("POST /teardown | host: m1.example:5050 | origin: http://m1.example:5050", 200),
            ("POST /teardown | host: m1.example:5050 | origin: https://M1.example:5050", 200),
            ("POST /teardown | host: m1.example:5050 | origin: http://m1.example:8080", 403),
            ("POST /teardown | host: m1.example | origin: http://evil.example", 403),
            ("POST /teardown | host: m1.example | origin: null", 403),
            (
                "POST /teardown | host: m1.example | origin: http://m1.example | origin: http://evil.example",
                403,
            ),
            ("POST /teardown | host: m1.example | sec-fetch-site: same-origin", 200),
            ("POST /teardown | host: m1.example | sec-fetch-site: none", 200),
            (
                "POST /teardown | host: m1.example | sec-fetch-site: same-origin | origin: https://proxy.example",
                200,
            ),
            ("POST /teardown | host: m1.example | sec-fetch-site: same-site", 403),
            ("POST /teardown | host: m1.example | sec-fetch-site: cross-site", 403),
            (
                "POST /teardown | host: m1.example | sec-fetch-site: same-origin | sec-fetch-site: cross-site",
                403,
            ),
            ("PUT /weights | host: m1.example | origin: http://evil.example", 403),
            ("DELETE /quota/web | host: m1.example | origin: http://evil.example", 403),
            ("UNHEARD /x | host: m1.example | origin: http://evil.example", 403),
            // Reads by pages of other sites get no permission to see the answer; links to pages work.
            ("GET / | host: m1.example | sec-fetch-site: cross-site", 200),
            ("GET /state?jsonp=f | host: m1.example", 403),
        ] {
            let status = policy.check(&request(line), local).err().map_or(200, |error| error.status.as_u16());
            assert_eq!(status, expected, "{line}");
        }
        let open = BrowserPolicy::new(&["*".to_string()], true).unwrap();
        assert_eq!(open.check(&request("GET /state?jsonp=f | host: any.example"), local), Ok(()));
    }

    #[test]
    fn allowed_hosts_are_names_and_addresses() {
        for entry in ["a.example:80", "http://a.example", "", ".", "a b", "[::1]:5050", "*.example"] {
            assert!(BrowserPolicy::new(&[entry.to_string()], false).is_err(), "{entry}");
        }
        assert!(BrowserPolicy::new(&["::1".to_string(), "a_b".to_string()], false).is_ok());
    }
}
