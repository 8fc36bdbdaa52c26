//! The parsers of the front end for the fuzzer: what they read is checked, not only that nothing panics.

use serde_json::Value;

use super::query::Query;
use super::row::{Place, Row};
use super::{glob, merge, ps, route};

/// The target of a request: a path that is passed on stays one path below its group.
pub fn call(method: &str, target: &str) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = Query::parse(Some(query));
    if let Ok(ps) = ps::Ps::parse(&query) {
        assert!(ps.select(std::iter::empty(), |_| None).is_empty());
    }
    if let Ok(filters) = query.filters() {
        let _ = merge::image_list(Vec::new(), &filters); // An error is as good as a list.
    }
    assert_eq!(Query::parse(Some(&query.text())), query, "{target}");
    if let Ok(found) = route::find(method, path) {
        let rebuilt = found.engine_path("containers", &found.name, "");
        let uri: http::Uri = rebuilt.parse().expect("a path");
        assert_eq!((uri.path(), uri.query()), (rebuilt.as_str(), None), "{target}");
        assert!(rebuilt.starts_with(&format!("{}/containers/", found.version)), "{rebuilt}");
        assert!(!rebuilt.split('/').any(|part| part == ".."), "{rebuilt}");
    }
    let _ = glob::matches(target, path); // It ends.
}

/// An element of an engine's list: its row is JSON, whatever the engine says.
pub fn listed(text: &str) {
    let listed: Value = serde_json::from_str(text).unwrap_or_default();
    let Some(row) = Row::of_listed(&listed, &Place { engine: "node-0", ip: "10.0.0.1" }) else { return };
    let mut written = String::new();
    row.write(&row.status.text(90), &mut written);
    let read: Value = serde_json::from_str(&written).expect("a row is JSON");
    assert_eq!(read["Id"], row.id.as_str());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_seeds_do_not_panic() {
        call("GET", "/v1.41/containers/json?all=1&filters=%7B%22label%22%3A%5B%22a%22%5D%7D");
        call("POST", "/containers/%2e%2e/start");
        call("DELETE", "/images/a/b:c?x=%00&y=%");
        listed(r#"{"Id":"ab","Names":["/web"],"Status":"Up 5 seconds","Ports":[null]}"#);
    }
}
