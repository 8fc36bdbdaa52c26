//! From the JSON of `--acls` to rules. Unknown keys are errors: a rule that is silently ignored is worse than no
//! rule.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tepui_authz::{Acls, Action, Entity, Rule};

/// Reads the JSON of v1: `{"permissive":…,"run_tasks":[{"principals":{…},"users":{…}}]}`.
pub fn parse_acls(text: &[u8]) -> Result<Acls, String> {
    let all: Map<String, Value> = serde_json::from_slice(text).map_err(|err| err.to_string())?;
    let mut permissive = true;
    let mut rules = BTreeMap::new();
    for (key, value) in &all {
        if key == "permissive" {
            permissive = value.as_bool().ok_or("'permissive' is neither true nor false")?;
            continue;
        }
        let action = Action::all().find(|action| action.key() == key);
        let action = action.ok_or_else(|| format!("'{key}' is not an action"))?;
        let list = value.as_array().ok_or_else(|| format!("'{key}' is not a list"))?;
        let parsed: Result<Vec<Rule>, String> = list.iter().map(|one| rule(action, one)).collect();
        rules.insert(action, parsed.map_err(|why| format!("'{key}': {why}"))?);
    }
    Acls::new(permissive, rules).map_err(|err| err.to_string())
}

fn rule(action: Action, value: &Value) -> Result<Rule, String> {
    let part = |key: &str| {
        let value = value.get(key).ok_or_else(|| format!("a rule has no '{key}'"))?;
        entity(value).map_err(|why| format!("'{key}': {why}"))
    };
    Ok(Rule { principals: part("principals")?, objects: part(action.object_key())? })
}

fn entity(value: &Value) -> Result<Entity, String> {
    let values: Option<BTreeSet<String>> = match value.get("values") {
        Some(values) => {
            let texts =
                values.as_array().map(|values| values.iter().map(|one| one.as_str().map(String::from)));
            texts.and_then(Iterator::collect).map(Some).ok_or("'values' is not a list of strings")?
        }
        None => None,
    };
    match value.get("type").map(|kind| kind.as_str()) {
        Some(Some("ANY")) => Ok(Entity::Any),
        Some(Some("NONE")) => Ok(Entity::None),
        None | Some(Some("SOME")) => values.map(Entity::Some).ok_or_else(|| "it has no 'values'".to_owned()),
        Some(_) => Err("its 'type' is not SOME, ANY or NONE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tepui_authz::Subject;

    use super::*;

    #[test]
    fn v1_acls_are_parsed() {
        let acls = parse_acls(
            br#"{"permissive": false,
                "register_frameworks":[{"principals":{"values":["marathon"]},"roles":{"values":["web","eng/%"]}}],
                "run_tasks":[{"principals":{"values":["marathon"]},"users":{"type":"SOME","values":["svc"]}},
                             {"principals":{"type":"ANY"},"users":{"type":"NONE"}}]}"#,
        )
        .unwrap();
        let marathon = Subject::Principal("marathon");
        assert!(acls.allows(marathon, Action::RegisterFramework, Some("eng/a")));
        assert!(!acls.allows(marathon, Action::RegisterFramework, Some("eng")));
        assert!(acls.allows(marathon, Action::RunTask, Some("svc")));
        assert!(!acls.allows(marathon, Action::RunTask, Some("root")));
        assert!(parse_acls(b"{}").unwrap().allows(marathon, Action::RunTask, Some("root")));
    }

    #[test]
    fn every_action_is_parsed_from_json() {
        for action in Action::all() {
            let text = format!(
                r#"{{"permissive":false,"{}":[{{"principals":{{"type":"ANY"}},"{}":{{"type":"ANY"}}}}]}}"#,
                action.key(),
                action.object_key()
            );
            let acls = parse_acls(text.as_bytes()).unwrap();
            assert!(acls.allows(Subject::Anonymous, action, None), "{action:?}");
        }
    }

    #[test]
    fn invalid_acls_are_rejected_with_their_reason() {
        for (text, why) in [
            (r#"[]"#, "invalid type"),
            (r#"{"permissive":1}"#, "'permissive' is neither true nor false"),
            (r#"{"set_quotas":[]}"#, "'set_quotas' is not an action"),
            (r#"{"run_tasks":{}}"#, "'run_tasks' is not a list"),
            (r#"{"run_tasks":[{"principals":{"type":"ANY"}}]}"#, "'run_tasks': a rule has no 'users'"),
            (
                r#"{"run_tasks":[{"principals":{},"users":{"type":"ANY"}}]}"#,
                "'run_tasks': 'principals': it has no 'values'",
            ),
            (
                r#"{"run_tasks":[{"principals":{"type":"X"},"users":{}}]}"#,
                "'run_tasks': 'principals': its 'type' is not SOME, ANY or NONE",
            ),
            (
                r#"{"run_tasks":[{"principals":{"values":[1]},"users":{}}]}"#,
                "'run_tasks': 'principals': 'values' is not a list of strings",
            ),
            (
                r#"{"view_flags":[{"principals":{"type":"ANY"},"flags":{"values":["x"]}}]}"#,
                "'flags' of 'view_flags' must be ANY or NONE",
            ),
        ] {
            let found = parse_acls(text.as_bytes()).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
