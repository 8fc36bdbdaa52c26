//! `docker build` on one engine, which constraints in build arguments can choose.

use http::Response;
use serde_json::{Value, json};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::query::Query;
use super::route::with_query;
use super::targets::Target;
use crate::body::{self, Body};

const PREFIX: &str = "constraint:";

impl Api {
    pub async fn build(&self, call: Call) -> Result<Response<Body>, ApiError> {
        if call.query.get("version") == Some("2") {
            return self.buildkit_build(call).await;
        }
        let (constraints, query) = split_constraints(&call.query)?;
        let engines = self.constrained_engines(&constraints)?;
        // The one with the fewest containers, by name if several have.
        let view = self.handle().view();
        let target = engines.into_iter().min_by_key(|target| view.on_agent(&target.agent).len());
        let target = target.ok_or_else(|| ApiError::failed("No healthy node available in the cluster"))?;
        self.build_on(call, &target, &query).await
    }

    /// The progress of a build; if the engine is lost, the last line says so.
    pub async fn build_on(
        &self,
        call: Call,
        target: &Target,
        query: &Query,
    ) -> Result<Response<Body>, ApiError> {
        let path = with_query(format!("{}/build", call.matched.version), &query.text());
        let response = self.forward(call, target, &path).await?;
        let (api, agent) = (self.clone(), target.agent.clone());
        let message = format!("engine {} was lost during the build", target.name);
        let lost = json!({"errorDetail": {"message": message}, "error": message});
        Ok(response.map(|body| {
            body::observed(body::explained(body, format!("{lost}\n")), move || api.touch(&agent))
        }))
    }
}

/// `--build-arg constraint:node==node-1` arrives as an argument `constraint:node` of the value `=node-1`.
fn split_constraints(query: &Query) -> Result<(Vec<String>, Query), ApiError> {
    let Some(text) = query.get("buildargs") else { return Ok((Vec::new(), query.clone())) };
    let wrong = |error: String| {
        ApiError::bad(format!("parameter buildargs must be a JSON object of strings: {error}"))
    };
    let mut arguments: serde_json::Map<String, Value> =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let keys: Vec<String> = arguments.keys().filter(|key| key.starts_with(PREFIX)).cloned().collect();
    let mut constraints = Vec::new();
    for key in keys {
        let value = arguments.remove(&key).unwrap_or_default();
        let value = value.as_str().ok_or_else(|| wrong(format!("{key} has no value")))?;
        constraints.push(format!("{}={value}", key.trim_start_matches(PREFIX)));
    }
    Ok((constraints, query.clone().with("buildargs", &Value::Object(arguments).to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::route::escape;

    #[test]
    fn constraints_are_extracted_from_build_arguments() {
        let cases = [
            (r#"{"constraint:node":"=node-9","A":"b"}"#, Some((vec!["node==node-9"], r#"{"A":"b"}"#))),
            (r#"{"constraint:node!":"node-9"}"#, Some((vec!["node!=node-9"], "{}"))),
            ("{}", Some((vec![], "{}"))),
            (r#"{"constraint:node":null}"#, None),
            ("[]", None),
        ];
        for (arguments, expected) in cases {
            let query = Query::parse(Some(&format!("t=x&buildargs={}", escape(arguments))));
            let split = split_constraints(&query).ok();
            let split = split.as_ref().map(|(constraints, query)| {
                (
                    constraints.iter().map(String::as_str).collect::<Vec<_>>(),
                    query.get("buildargs").unwrap_or_default(),
                )
            });
            assert_eq!(split, expected, "{arguments}");
        }
    }
}
