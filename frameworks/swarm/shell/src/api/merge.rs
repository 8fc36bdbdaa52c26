//! Lists of several engines as one. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::ApiError;
use super::glob;
use super::query::Filters;

/// `node-0/name`, for what exists on one engine only.
pub fn prefixed(engine: &str, name: &str) -> String {
    format!("{engine}/{name}")
}

/// Images by id, with the tags and digests that any engine has for them; newest first.
pub fn unique_images(images: Vec<(String, Value)>) -> Vec<Value> {
    let mut unique: BTreeMap<String, Value> = BTreeMap::new();
    for (_, image) in images {
        let id = image["Id"].as_str().or_else(|| image["ID"].as_str()).unwrap_or_default().to_owned();
        match unique.get_mut(&id) {
            None => _ = unique.insert(id, image),
            Some(known) => {
                for field in ["RepoTags", "RepoDigests"] {
                    extend(known, field, image.get(field));
                }
            }
        }
    }
    let mut images: Vec<Value> = unique.into_values().collect();
    images.sort_by_key(|image| std::cmp::Reverse(image["Created"].as_i64().unwrap_or(0)));
    for image in &mut images {
        drop_placeholders(image);
    }
    images
}

fn extend(known: &mut Value, field: &str, more: Option<&Value>) {
    let more = more.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if more.is_empty() {
        return;
    }
    let Some(object) = known.as_object_mut() else { return };
    let own = object.entry(field).or_insert(Value::Null);
    if !own.is_array() {
        *own = Value::Array(Vec::new());
    }
    if let Value::Array(own) = own {
        for value in more {
            if !own.contains(value) {
                own.push(value.clone());
            }
        }
    }
}

/// An image with a tag on one engine and none on another has that tag.
fn drop_placeholders(image: &mut Value) {
    for field in ["RepoTags", "RepoDigests"] {
        if let Some(list) = image.get_mut(field).and_then(Value::as_array_mut) {
            let is_placeholder = |it: &Value| it.as_str().is_some_and(|text| text.starts_with("<none>"));
            if list.iter().any(|it| !is_placeholder(it)) {
                list.retain(|it| !is_placeholder(it));
            }
        }
    }
}

const IMAGE_FILTERS: [&str; 7] = ["before", "dangling", "label", "label!", "node", "reference", "since"];

/// Images of all engines as `docker images` shows them.
pub fn image_list(images: Vec<(String, Value)>, filters: &Filters) -> Result<Vec<Value>, ApiError> {
    filters.check(&IMAGE_FILTERS)?;
    let dangling = filters.truth("dangling")?;
    let created = |kind: &str| -> Result<Option<i64>, ApiError> {
        let Some(named) = filters.get(kind).first() else { return Ok(None) };
        let found = images.iter().find(|(_, image)| is_image(image, named));
        let missing =
            || ApiError::bad(format!("Invalid filter: 'type'='{kind}': no such image found: '{named}'"));
        Ok(Some(found.ok_or_else(missing)?.1["Created"].as_i64().unwrap_or(0)))
    };
    let (before, since) = (created("before")?, created("since")?);
    let on_node = images.into_iter().filter(|(engine, _)| filters.exactly("node", engine)).collect();
    let keeps = |image: &Value| {
        let own = image["Created"].as_i64().unwrap_or(0);
        before.is_none_or(|limit| own < limit)
            && since.is_none_or(|limit| own > limit)
            && dangling.is_none_or(|wanted| is_dangling(image) == wanted)
            && filters.labels(|key| image["Labels"][key].as_str())
            && filters.any("reference", |pattern| references(image).any(|it| glob::is_reference(pattern, it)))
    };
    let mut images: Vec<Value> = unique_images(on_node).into_iter().filter(keeps).collect();
    if filters.has("reference") {
        images.iter_mut().for_each(|image| keep_references(image, filters));
    }
    Ok(images)
}

/// An image with several names is shown under those that the filter matches.
fn keep_references(image: &mut Value, filters: &Filters) {
    for field in ["RepoTags", "RepoDigests"] {
        if let Some(list) = image.get_mut(field).and_then(Value::as_array_mut) {
            let is_kept = |it: &str| filters.any("reference", |pattern| glob::is_reference(pattern, it));
            list.retain(|it| it.as_str().is_some_and(is_kept));
        }
    }
}

fn references(image: &Value) -> impl Iterator<Item = &str> {
    let list = |field: &str| image[field].as_array().into_iter().flatten().filter_map(Value::as_str);
    list("RepoTags").chain(list("RepoDigests"))
}

fn is_dangling(image: &Value) -> bool {
    image["RepoTags"].as_array().into_iter().flatten().all(|tag| tag == "<none>:<none>")
}

/// By id, the beginning of it, or a reference; `latest` is understood.
pub fn is_image(image: &Value, named: &str) -> bool {
    let id = image["Id"].as_str().unwrap_or_default();
    let plain = id.strip_prefix("sha256:").unwrap_or(id);
    let named_plain = named.strip_prefix("sha256:").unwrap_or(named);
    let is_hex = !named_plain.is_empty() && named_plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    let named = familiar(named);
    let with_tag = format!("{named}:latest");
    let has_tag = named.contains('@') || named.rsplit_once(':').is_some_and(|(_, tag)| !tag.contains('/'));
    (is_hex && plain.starts_with(named_plain))
        || references(image).any(|it| it == named || !has_tag && it == with_tag)
}

/// Whether an image has any tag of a repository.
pub fn is_of_repository(image: &Value, repository: &str) -> bool {
    let tagged = |reference: &str| {
        reference
            .rsplit_once(':')
            .is_some_and(|(name, tag)| name == familiar(repository) && !tag.contains('/'))
    };
    image["RepoTags"].as_array().into_iter().flatten().filter_map(Value::as_str).any(tagged)
}

/// Without the registry and the repository that are meant if none are named.
pub fn familiar(name: &str) -> &str {
    let name =
        name.strip_prefix("docker.io/").or_else(|| name.strip_prefix("index.docker.io/")).unwrap_or(name);
    name.strip_prefix("library/").unwrap_or(name)
}

/// Labels of volumes and networks.
pub fn label<'v>(document: &'v Value, key: &str) -> Option<&'v str> {
    document["Labels"][key].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn images() -> Vec<(String, Value)> {
        vec![
            (
                "node-0".into(),
                json!({"Id": "sha256:aa11", "RepoTags": ["busybox:latest"], "RepoDigests": null, "Created": 5, "Labels": {"a": "b"}}),
            ),
            (
                "node-1".into(),
                json!({"Id": "sha256:aa11", "RepoTags": ["busybox:1", "busybox:latest"], "RepoDigests": ["busybox@sha256:00"], "Created": 5, "Labels": {"a": "b"}}),
            ),
            (
                "node-1".into(),
                json!({"Id": "sha256:bb22", "RepoTags": ["<none>:<none>"], "Created": 9, "Labels": null}),
            ),
            (
                "node-2".into(),
                json!({"Id": "sha256:cc33", "RepoTags": ["host:5000/test:latest"], "Created": 7}),
            ),
        ]
    }

    #[test]
    fn pushed_repositories_are_found_by_any_tag() {
        let image = json!({"Id": "sha256:aa", "RepoTags": ["host:5000/a/web:1", "web:2"]});
        for (repository, expected) in [
            ("host:5000/a/web", true),
            ("docker.io/library/web", true),
            ("web", true),
            ("host:5000/a", false),
            ("host", false),
            ("a/web", false),
        ] {
            assert_eq!(is_of_repository(&image, repository), expected, "{repository}");
        }
    }

    #[test]
    fn images_are_grouped_by_id() {
        let list = unique_images(images());
        let ids: Vec<&str> = list.iter().filter_map(|image| image["Id"].as_str()).collect();
        assert_eq!(ids, ["sha256:bb22", "sha256:cc33", "sha256:aa11"]);
        assert_eq!(list[2]["RepoTags"], json!(["busybox:latest", "busybox:1"]));
        assert_eq!(list[2]["RepoDigests"], json!(["busybox@sha256:00"]));
        let tagged = unique_images(vec![
            ("a".into(), json!({"Id": "x", "RepoTags": ["<none>:<none>"]})),
            ("b".into(), json!({"Id": "x", "RepoTags": ["t:1"]})),
        ]);
        assert_eq!(tagged[0]["RepoTags"], json!(["t:1"]));
        assert_eq!(unique_images(vec![("a".into(), json!(null)), ("b".into(), json!(7))]).len(), 1);
    }

    #[test]
    fn filters_choose_images() {
        for (filters, expected) in [
            (json!({}), "bb22 cc33 aa11"),
            (json!({"node": ["node-0"]}), "aa11"),
            (json!({"node": ["node-9"]}), ""),
            (json!({"dangling": ["true"]}), "bb22"),
            (json!({"dangling": ["false"]}), "cc33 aa11"),
            (json!({"label": ["a=b"]}), "aa11"),
            (json!({"reference": ["busy*"]}), "aa11"),
            (json!({"reference": ["host:5000/test"]}), "cc33"),
            (json!({"before": ["host:5000/test"]}), "aa11"),
            (json!({"since": ["busybox"]}), "bb22 cc33"),
            (json!({"since": ["cc3"]}), "bb22"),
        ] {
            let parsed = Filters::parse(&filters.to_string()).expect("filters");
            let list = image_list(images(), &parsed).expect("a list");
            let ids: Vec<&str> =
                list.iter().filter_map(|image| image["Id"].as_str()?.strip_prefix("sha256:")).collect();
            assert_eq!(ids.join(" "), expected, "{filters}");
        }
        let filters = Filters::parse(r#"{"reference":["busybox:1"]}"#).expect("filters");
        let list = image_list(images(), &filters).expect("a list");
        assert_eq!(list[0]["RepoTags"], json!(["busybox:1"]));
        for (filters, expected) in [
            (json!({"dangling": ["maybe"]}), "Invalid filter: 'type'='dangling'"),
            (json!({"before": ["x"]}), "Invalid filter: 'type'='before': no such image found: 'x'"),
        ] {
            let parsed = Filters::parse(&filters.to_string()).expect("filters");
            assert_eq!(image_list(images(), &parsed), Err(ApiError::bad(expected)), "{filters}");
        }
    }

    #[test]
    fn images_are_found_by_name_tag_digest_and_id() {
        let (_, image) = images().swap_remove(1);
        for (named, expected) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1", true),
            ("docker.io/library/busybox:1", true),
            ("busybox:2", false),
            ("busybox@sha256:00", true),
            ("aa11", true),
            ("sha256:aa11", true),
            ("aa", true),
            ("ab", false),
            ("", false),
        ] {
            assert_eq!(is_image(&image, named), expected, "{named}");
        }
    }
}
