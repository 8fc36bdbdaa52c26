//! Disabled endpoints: `--firewall_rules`, in v1's format.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use tepui_http::{HttpError, components};

use crate::router::Router;

/// The disabled endpoints. A cheap clone; without any, all are open.
#[derive(Clone, Debug, Default)]
pub struct Firewall {
    disabled: Arc<BTreeSet<Vec<String>>>,
}

impl Firewall {
    /// Reads `{"disabled_endpoints":{"paths":["/master/state",…]}}`.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let all: Value = serde_json::from_slice(text).map_err(|err| err.to_string())?;
        let rules = all.as_object().ok_or("it is not an object")?;
        if let Some(other) = rules.keys().find(|name| *name != "disabled_endpoints") {
            return Err(format!("'{other}' is not known"));
        }
        let paths = all.pointer("/disabled_endpoints/paths").and_then(Value::as_array);
        let paths = paths.ok_or("'disabled_endpoints.paths' is not a list")?.iter();
        let parts = paths.map(|path| match path.as_str().map(components) {
            Some(Ok(parts)) => Ok(parts),
            Some(Err(_)) | None => Err(format!("{path} is not an endpoint path")),
        });
        Ok(Self { disabled: Arc::new(parts.collect::<Result<_, String>>()?) })
    }

    /// 403 if the endpoint that this path means is disabled, by whatever name.
    pub fn check<P, C>(&self, router: &Router<P, C>, path: &[String]) -> Result<(), HttpError> {
        if self.disabled.is_empty() {
            return Ok(());
        }
        let meant = |path| router.place(path).map(|(place, _)| place);
        // What a rule names more exactly than there are endpoints, it does not mean.
        let named = |rule| router.place(rule).filter(|(_, rest)| rest.is_empty()).map(|(place, _)| place);
        let is_disabled = |place| self.disabled.iter().any(|one| named(one) == Some(place));
        match meant(path).is_some_and(is_disabled) {
            true => {
                let name = path.join("/");
                Err(HttpError::new(StatusCode::FORBIDDEN, format!("Endpoint '/{name}' is disabled")))
            }
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tests::row;

    #[test]
    fn disabled_endpoint_is_rejected_under_all_its_paths() {
        let own = ["/state", "/api/v1", "/api/v1/scheduler", "/"].map(|path| row(path, ""));
        let router = Router::of("master", own, [row("/files/read", "")]);
        let text =
            br#"{"disabled_endpoints":{"paths":["/master/state","/files/read","/api/v1","/nothing"]}}"#;
        let firewall = Firewall::parse(text).unwrap();
        for (path, refused) in [
            ("/state", Some("Endpoint '/state' is disabled")),
            ("/master/state", Some("Endpoint '/master/state' is disabled")),
            ("//state/", Some("Endpoint '/state' is disabled")),
            ("/state/more", Some("Endpoint '/state/more' is disabled")),
            ("/files/read", Some("Endpoint '/files/read' is disabled")),
            ("/master/api/v1", Some("Endpoint '/master/api/v1' is disabled")),
            ("/api/v1/scheduler", None),
            ("/files", None),
        ] {
            let said = firewall.check(&router, &components(path).unwrap()).err();
            assert_eq!(said.as_ref().map(|error| error.message.as_str()), refused, "{path}");
            assert!(said.is_none_or(|error| error.status == StatusCode::FORBIDDEN));
        }
        assert!(Firewall::default().check(&router, &components("/state").unwrap()).is_ok());
    }

    #[test]
    fn invalid_firewall_rules_are_rejected() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"disabled_endpoints":["/state"]}"#,
            r#"{"disabled_endpoints":{"paths":[1]}}"#,
            r#"{"disabled_endpoints":{"paths":["state"]}}"#,
            r#"{"disabled_endpoints":{"paths":[]},"others":{}}"#,
        ] {
            assert!(Firewall::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
