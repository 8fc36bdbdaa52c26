//! Random documents, paths and patterns: nothing that a client or an engine sends may panic, and answers stay JSON.

use serde_json::{Map, Value};
use tepui_fsm::Rng;

use crate::api::query::{Filters, Query};
use crate::api::row::{Place, Row};
use crate::api::{glob, merge, ps, route, status};

const ROUNDS: usize = 3000;
/// Names that code looks for, so that random documents get beyond the first check.
const KEYS: [&str; 18] = [
    "Id",
    "Names",
    "Labels",
    "Ports",
    "IP",
    "PublicPort",
    "Type",
    "State",
    "Status",
    "Created",
    "Mounts",
    "RepoTags",
    "RepoDigests",
    "NetworkSettings",
    "Networks",
    "name",
    "label",
    "status",
];
const TEXTS: [&str; 16] = [
    "",
    "/",
    "a",
    "../..",
    "\u{0}",
    "\"",
    "\\",
    "é\u{1F600}",
    "Up 5 minutes (healthy)",
    "Exited (137) 1 second ago",
    "0.0.0.0",
    "sha256:00",
    "<none>:<none>",
    "(((",
    "a=b=c",
    "node-0/web",
];

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[usize::try_from(rng.next_u64()).unwrap_or(0) % from.len()]
}

fn text(rng: &mut Rng) -> String {
    match rng.next_u64() % 4 {
        0 => pick(rng, &KEYS).to_owned(),
        1 => format!("{}{}", pick(rng, &TEXTS), pick(rng, &TEXTS)),
        2 => char::from_u32((rng.next_u64() % 0x11_0000) as u32).map(String::from).unwrap_or_default(),
        _ => pick(rng, &TEXTS).to_owned(),
    }
}

fn document(rng: &mut Rng, depth: u32) -> Value {
    match rng.next_u64() % if depth == 0 { 5 } else { 8 } {
        0 => Value::Null,
        1 => Value::from(rng.next_u64().is_multiple_of(2)),
        2 => Value::from(rng.next_u64()),
        3 => Value::from(-(rng.next_u64() as i64 & i64::MAX)),
        4 => Value::from(text(rng)),
        5 => (0..rng.next_u64() % 4).map(|_| document(rng, depth - 1)).collect(),
        _ => Value::Object(object(rng, depth - 1)),
    }
}

fn object(rng: &mut Rng, depth: u32) -> Map<String, Value> {
    (0..rng.next_u64() % 6).map(|_| (text(rng), document(rng, depth))).collect()
}

#[test]
fn lists_of_a_hostile_engine_stay_json() {
    let mut rng = Rng::seeded(16);
    for _ in 0..ROUNDS {
        let mut listed = object(&mut rng, 3);
        listed.insert("Id".to_owned(), Value::from("ab"));
        let name = text(&mut rng);
        let row =
            Row::of_listed(&Value::Object(listed), &Place { engine: &name, ip: "10.0.0.1" }).expect("a row");
        let mut written = String::new();
        row.write(&row.status.text(rng.next_u64()), &mut written);
        let read: Value = serde_json::from_str(&written).expect("a row is JSON");
        assert_eq!(read["Id"], "ab");
        let images = (0..3).map(|_| (text(&mut rng), document(&mut rng, 3))).collect();
        let filters = Filters::parse(&Value::Object(object(&mut rng, 1)).to_string()).unwrap_or_default();
        let _ = merge::image_list(images, &filters); // An error is as good as a list.
    }
}

#[test]
fn queries_of_a_hostile_client_are_read_or_rejected() {
    let mut rng = Rng::seeded(17);
    for _ in 0..ROUNDS {
        let filters = document(&mut rng, 2).to_string();
        let query = format!(
            "all={}&limit={}&filters={}",
            text(&mut rng),
            rng.next_u64() as i64,
            route::escape(&filters)
        );
        if let Ok(ps) = ps::Ps::parse(&Query::parse(Some(&query))) {
            assert!(ps.select(std::iter::empty(), |_| None).is_empty());
        }
        let path = format!("/{}/{}/{}", text(&mut rng), text(&mut rng), text(&mut rng));
        if let Ok(found) = route::find("GET", &path) {
            let rebuilt = found.engine_path("containers", &found.name, "");
            assert!(rebuilt.parse::<http::Uri>().is_ok(), "{rebuilt}");
        }
        let (pattern, name) = (format!("{}*{}", text(&mut rng), text(&mut rng)), text(&mut rng));
        let _ = glob::matches(&pattern, &name); // It ends.
        let _ = status::Status::parse(&name).text(rng.next_u64());
    }
}
