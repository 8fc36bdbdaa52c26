//! The table of the API: which method and path are answered how.
//!
//! A `*` in a pattern stands for one or more segments: names of images and `engine/name` have slashes. A literal pattern wins
//! over one with a `*`. Every path may begin with a version of the API, which goes on to the engine.

use percent_encoding::percent_decode_str;

use super::error::ApiError;
use crate::version::{self, API_VERSION, API_VERSION_MIN};

/// The longest path that is taken apart.
const PATH_BYTES_MAX: usize = 8 * 1024;

/// How a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Ping,
    Version,
    Info,
    Events,
    DiskUsage,
    /// To any healthy engine: the answer is the same everywhere.
    AnyEngine,
    ContainerList,
    ContainerCreate,
    ContainerInspect,
    ContainerStart,
    ContainerRestart,
    ContainerRemove,
    ContainerRename,
    ContainerUpdate,
    ContainerExec,
    ContainersPrune,
    /// To the engine of the container, which it does not change.
    ContainerRead,
    /// To the engine of the container, which it changes.
    ContainerChange,
    /// A stream of bytes in both directions with the engine of the container.
    ContainerTunnel,
    Commit,
    ExecStart,
    ExecRead,
    ImageList,
    ImageCreate,
    ImageLoad,
    /// To an engine that has the image.
    ImageRead,
    ImagesSave,
    ImageTag,
    ImageRemove,
    ImagesPrune,
    Build,
    BuildCancel,
    BuildPrune,
    /// A stream of bytes in both directions with the engine that serves BuildKit.
    BuildTunnel,
    VolumeList,
    VolumeCreate,
    VolumeInspect,
    VolumeRemove,
    VolumesPrune,
    NetworkList,
    NetworkCreate,
    NetworkInspect,
    NetworkConnect,
    NetworkDisconnect,
    NetworkRemove,
    NetworksPrune,
    /// `docker inspect` asks for it after everything else: there is none, and that is all.
    PluginInspect,
    /// Has no meaning for a cluster, for this reason.
    Unsupported(&'static str),
}

const SWARM_MODE: &str = "services of swarm mode belong to one engine; this cluster runs containers";
const PLUGINS: &str = "plugins belong to one engine; manage them there";

use Endpoint as E;

pub const ROUTES: &[(&str, &str, Endpoint)] = &[
    ("GET", "_ping", E::Ping),
    ("HEAD", "_ping", E::Ping),
    ("GET", "version", E::Version),
    ("GET", "info", E::Info),
    ("GET", "events", E::Events),
    ("GET", "system/df", E::DiskUsage),
    ("POST", "auth", E::AnyEngine),
    ("GET", "images/search", E::AnyEngine),
    ("GET", "distribution/*/json", E::AnyEngine),
    ("GET", "containers/json", E::ContainerList),
    ("GET", "containers/ps", E::ContainerList),
    ("POST", "containers/create", E::ContainerCreate),
    ("POST", "containers/prune", E::ContainersPrune),
    ("GET", "containers/*/json", E::ContainerInspect),
    ("POST", "containers/*/start", E::ContainerStart),
    ("POST", "containers/*/restart", E::ContainerRestart),
    ("POST", "containers/*/rename", E::ContainerRename),
    ("POST", "containers/*/update", E::ContainerUpdate),
    ("POST", "containers/*/exec", E::ContainerExec),
    ("DELETE", "containers/*", E::ContainerRemove),
    ("GET", "containers/*/archive", E::ContainerRead),
    ("HEAD", "containers/*/archive", E::ContainerRead),
    ("PUT", "containers/*/archive", E::ContainerRead),
    ("GET", "containers/*/export", E::ContainerRead),
    ("GET", "containers/*/changes", E::ContainerRead),
    ("GET", "containers/*/top", E::ContainerRead),
    ("GET", "containers/*/logs", E::ContainerRead),
    ("GET", "containers/*/stats", E::ContainerRead),
    ("POST", "containers/*/copy", E::ContainerRead),
    ("POST", "containers/*/resize", E::ContainerRead),
    ("POST", "containers/*/wait", E::ContainerChange),
    ("POST", "containers/*/stop", E::ContainerChange),
    ("POST", "containers/*/kill", E::ContainerChange),
    ("POST", "containers/*/pause", E::ContainerChange),
    ("POST", "containers/*/unpause", E::ContainerChange),
    ("POST", "containers/*/attach", E::ContainerTunnel),
    ("GET", "containers/*/attach/ws", E::ContainerTunnel),
    ("POST", "commit", E::Commit),
    ("POST", "exec/*/start", E::ExecStart),
    ("POST", "exec/*/resize", E::ExecRead),
    ("GET", "exec/*/json", E::ExecRead),
    ("GET", "images/json", E::ImageList),
    ("POST", "images/create", E::ImageCreate),
    ("POST", "images/load", E::ImageLoad),
    ("GET", "images/get", E::ImagesSave),
    ("POST", "images/prune", E::ImagesPrune),
    ("GET", "images/*/get", E::ImageRead),
    ("GET", "images/*/history", E::ImageRead),
    ("GET", "images/*/json", E::ImageRead),
    ("POST", "images/*/push", E::ImageRead),
    ("POST", "images/*/tag", E::ImageTag),
    ("DELETE", "images/*", E::ImageRemove),
    ("POST", "build", E::Build),
    ("POST", "build/cancel", E::BuildCancel),
    ("POST", "build/prune", E::BuildPrune),
    ("POST", "session", E::BuildTunnel),
    ("POST", "grpc", E::BuildTunnel),
    ("GET", "volumes", E::VolumeList),
    ("POST", "volumes/create", E::VolumeCreate),
    ("POST", "volumes/prune", E::VolumesPrune),
    ("GET", "volumes/*", E::VolumeInspect),
    ("DELETE", "volumes/*", E::VolumeRemove),
    ("GET", "networks", E::NetworkList),
    ("POST", "networks/create", E::NetworkCreate),
    ("POST", "networks/prune", E::NetworksPrune),
    ("GET", "networks/*", E::NetworkInspect),
    ("POST", "networks/*/connect", E::NetworkConnect),
    ("POST", "networks/*/disconnect", E::NetworkDisconnect),
    ("DELETE", "networks/*", E::NetworkRemove),
    ("GET", "images/viz", E::Unsupported("the graph of images belongs to one engine")),
    ("GET", "plugins/*/json", E::PluginInspect),
    ("*", "plugins", E::Unsupported(PLUGINS)),
    ("*", "plugins/*", E::Unsupported(PLUGINS)),
    ("*", "swarm", E::Unsupported(SWARM_MODE)),
    ("*", "swarm/*", E::Unsupported(SWARM_MODE)),
    ("*", "nodes", E::Unsupported(SWARM_MODE)),
    ("*", "nodes/*", E::Unsupported(SWARM_MODE)),
    ("*", "services", E::Unsupported(SWARM_MODE)),
    ("*", "services/*", E::Unsupported(SWARM_MODE)),
    ("*", "tasks", E::Unsupported(SWARM_MODE)),
    ("*", "tasks/*", E::Unsupported(SWARM_MODE)),
    ("*", "secrets", E::Unsupported(SWARM_MODE)),
    ("*", "secrets/*", E::Unsupported(SWARM_MODE)),
    ("*", "configs", E::Unsupported(SWARM_MODE)),
    ("*", "configs/*", E::Unsupported(SWARM_MODE)),
];

/// A call whose path was taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    pub endpoint: Endpoint,
    /// `/v1.41`, or that of the newest version if the client named none.
    pub version: String,
    /// What stands for the `*`, decoded; empty without one.
    pub name: String,
    /// The segments behind the `*`.
    pub action: String,
}

impl Matched {
    /// The same call on an engine, for another name.
    pub fn engine_path(&self, group: &str, name: &str, query: &str) -> String {
        let mut path = format!("{}/{group}/{}", self.version, escape_path(name));
        if !self.action.is_empty() {
            path += &format!("/{}", self.action);
        }
        with_query(path, query)
    }
}

pub fn with_query(path: String, query: &str) -> String {
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

/// Slashes stay: they separate the parts of a name.
pub fn escape_path(name: &str) -> String {
    name.split('/').map(escape).collect::<Vec<_>>().join("/")
}

/// For one segment of a path or one value of a query.
pub fn escape(text: &str) -> String {
    const PLAIN: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encoding::utf8_percent_encode(text, PLAIN).to_string()
}

/// Finds the row of the table for a request.
pub fn find(method: &str, path: &str) -> Result<Matched, ApiError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(ApiError::bad(format!("the path is longer than {PATH_BYTES_MAX} bytes")));
    }
    let decoded = path.split('/').filter(|part| !part.is_empty());
    let decoded: Result<Vec<String>, _> =
        decoded.map(|part| percent_decode_str(part).decode_utf8().map(String::from)).collect();
    let segments = decoded.map_err(|_| ApiError::bad("the path is not UTF-8"))?;
    // Also between slashes that were encoded: paths of engines are built of what was decoded.
    let mut parts = segments.iter().flat_map(|segment| segment.split('/'));
    if parts.any(|part| part == "." || part == ".." || part.contains('\0')) {
        return Err(ApiError::bad("the path must not have segments '.' or '..'"));
    }
    let (version, rest) = split_version(&segments)?;
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let rows = || ROUTES.iter().filter(|(own, ..)| *own == "*" || *own == method);
    let literal = rows().find(|(_, pattern, _)| pattern.split('/').eq(rest.iter().copied()));
    let row = literal.map(|(_, _, endpoint)| (*endpoint, String::new(), String::new()));
    let row = row.or_else(|| rows().find_map(|(_, pattern, endpoint)| matched(pattern, *endpoint, &rest)));
    let (endpoint, name, action) = row.ok_or_else(|| ApiError::not_found("page not found"))?;
    Ok(Matched { endpoint, version, name, action })
}

fn matched(pattern: &str, endpoint: Endpoint, path: &[&str]) -> Option<(Endpoint, String, String)> {
    let (head, tail) = pattern.split_once("/*")?;
    let head: Vec<&str> = head.split('/').collect();
    let tail: Vec<&str> = tail.split('/').filter(|part| !part.is_empty()).collect();
    let middle = path.strip_prefix(head.as_slice())?.strip_suffix(tail.as_slice())?;
    (!middle.is_empty()).then(|| (endpoint, middle.join("/"), tail.join("/")))
}

/// The version that a path begins with, checked; the segments behind it.
fn split_version(segments: &[String]) -> Result<(String, &[String]), ApiError> {
    let newest = || format!("/v{}", API_VERSION.text);
    let Some((first, rest)) = segments.split_first() else { return Ok((newest(), segments)) };
    let Some((major, minor)) = first.strip_prefix('v').and_then(version::parse) else {
        return Ok((newest(), segments));
    };
    let given = format!("{major}.{minor}");
    if (major, minor) > API_VERSION.number() {
        return Err(ApiError::bad(format!(
            "client version {given} is too new. Maximum supported API version is {}",
            API_VERSION.text
        )));
    }
    if (major, minor) < API_VERSION_MIN.number() {
        return Err(ApiError::bad(format!(
            "client version {given} is too old. Minimum supported API version is {}, please upgrade your client to a newer \
             version",
            API_VERSION_MIN.text
        )));
    }
    Ok((format!("/v{given}"), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_routed_to_endpoints() {
        for (call, endpoint, version, name, action) in [
            ("GET /_ping", E::Ping, "/v1.41", "", ""),
            ("HEAD /v1.24/_ping", E::Ping, "/v1.24", "", ""),
            ("GET /v1.41/containers/json", E::ContainerList, "/v1.41", "", ""),
            ("GET /containers/json", E::ContainerList, "/v1.41", "", ""),
            ("GET /containers/c/json", E::ContainerInspect, "/v1.41", "c", "json"),
            ("GET /v1.40/containers/node-0/web/json", E::ContainerInspect, "/v1.40", "node-0/web", "json"),
            ("GET /containers/node-0%2Fweb/json", E::ContainerInspect, "/v1.41", "node-0/web", "json"),
            ("GET /containers/json/json", E::ContainerInspect, "/v1.41", "json", "json"),
            ("POST /containers/create", E::ContainerCreate, "/v1.41", "", ""),
            ("DELETE /containers/v1.41", E::ContainerRemove, "/v1.41", "v1.41", ""),
            ("POST /containers/x/wait", E::ContainerChange, "/v1.41", "x", "wait"),
            ("GET /containers/x/attach/ws", E::ContainerTunnel, "/v1.41", "x", "attach/ws"),
            ("GET /images/json", E::ImageList, "/v1.41", "", ""),
            ("GET /images/a/b:c/json", E::ImageRead, "/v1.41", "a/b:c", "json"),
            (
                "GET /images/host:5000/a@sha256:00/history",
                E::ImageRead,
                "/v1.41",
                "host:5000/a@sha256:00",
                "history",
            ),
            ("GET /images/get", E::ImagesSave, "/v1.41", "", ""),
            (
                "DELETE /images/docker.io%2Flibrary%2Fbusybox",
                E::ImageRemove,
                "/v1.41",
                "docker.io/library/busybox",
                "",
            ),
            ("POST /networks/n/connect", E::NetworkConnect, "/v1.41", "n", "connect"),
            ("GET /networks/node-1/test", E::NetworkInspect, "/v1.41", "node-1/test", ""),
            ("DELETE /volumes/node-1/v", E::VolumeRemove, "/v1.41", "node-1/v", ""),
            ("POST /exec/00/start", E::ExecStart, "/v1.41", "00", "start"),
            ("POST /session", E::BuildTunnel, "/v1.41", "", ""),
            ("POST /v1.40/build/cancel", E::BuildCancel, "/v1.40", "", ""),
            ("GET /services", E::Unsupported(SWARM_MODE), "/v1.41", "", ""),
            ("DELETE /secrets/a/b", E::Unsupported(SWARM_MODE), "/v1.41", "a/b", ""),
            ("GET //v1.41//info/", E::Info, "/v1.41", "", ""),
        ] {
            let (method, path) = call.split_once(' ').expect("method and path");
            let expected =
                Matched { endpoint, version: version.into(), name: name.into(), action: action.into() };
            assert_eq!(find(method, path), Ok(expected), "{call}");
        }
    }

    #[test]
    fn other_paths_are_rejected() {
        for (call, status, message) in [
            ("GET /", 404, "page not found"),
            ("GET /nothing", 404, "page not found"),
            ("PUT /info", 404, "page not found"),
            ("GET /containers", 404, "page not found"),
            ("GET /containers//json/x", 404, "page not found"),
            ("GET /containers/../info", 400, "the path must not have segments '.' or '..'"),
            ("GET /containers/%2e%2e/json", 400, "the path must not have segments '.' or '..'"),
            ("GET /images/a%2F..%2F..%2Finfo/json", 400, "the path must not have segments '.' or '..'"),
            ("DELETE /volumes/a%2f%2e", 400, "the path must not have segments '.' or '..'"),
            ("GET /containers/%ff/json", 400, "the path is not UTF-8"),
            ("GET /v1.50/info", 400, "client version 1.50 is too new. Maximum supported API version is 1.41"),
            ("GET /v2.0/info", 400, "client version 2.0 is too new. Maximum supported API version is 1.41"),
            (
                "GET /v1.11/info",
                400,
                "client version 1.11 is too old. Minimum supported API version is 1.12, please upgrade your client to a \
                 newer version",
            ),
            ("GET /v99999999999.1/info", 404, "page not found"),
        ] {
            let (method, path) = call.split_once(' ').expect("method and path");
            let error = find(method, path).expect_err(call);
            assert_eq!((error.status.as_u16(), error.message.as_str()), (status, message), "{call}");
        }
        let long = format!("/containers/{}/json", "a".repeat(PATH_BYTES_MAX));
        assert_eq!(find("GET", &long).expect_err("a long path").status.as_u16(), 400);
    }

    #[test]
    fn paths_of_engines_are_rebuilt() {
        for (path, group, name, query, expected) in [
            (
                "/v1.40/containers/c/json",
                "containers",
                "ab12",
                "size=1",
                "/v1.40/containers/ab12/json?size=1",
            ),
            ("/containers/containers", "containers", "ab12", "", "/v1.41/containers/ab12"),
            ("/images/a/b c/json", "images", "a/b c", "", "/v1.41/images/a/b%20c/json"),
            ("/networks/x?y/connect", "networks", "x?y", "", "/v1.41/networks/x%3Fy/connect"),
        ] {
            let method = match group {
                "networks" => "POST",
                _ if path.ends_with("json") => "GET",
                _ => "DELETE",
            };
            let found = find(method, path).expect(path);
            assert_eq!(found.engine_path(group, name, query), expected, "{path}");
        }
    }
}
