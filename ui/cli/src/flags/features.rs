//! `--agent_features` and `--default_container_info`: capabilities of the agent, and the container of executors without one.

use anyhow::{Result, anyhow, bail, ensure};
use serde::Deserialize;
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1::ContainerInfo;
use tepui_proto::mesos::v1::agent_info::capability::Type;
use tepui_proto::mesos::v1::container_info;

use super::access;

/// As v1 has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Features {
    capabilities: Vec<Feature>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    r#type: String,
}

/// The capabilities named by the flag; as in v1, only RESIZE_VOLUME may be omitted.
pub fn capabilities(text: &str, all: &[Type]) -> Result<Vec<Type>> {
    let features: Features =
        serde_json::from_str(text).map_err(|reason| anyhow!("--agent_features: {reason}"))?;
    let named: Vec<&str> = features.capabilities.iter().map(|feature| feature.r#type.as_str()).collect();
    if let Some(other) = named.iter().find(|name| all.iter().all(|one| one.proto_name() != **name)) {
        let known: Vec<&str> = all.iter().map(|one| one.proto_name()).collect();
        bail!("--agent_features: unknown capability {other}; capabilities: {}", known.join(", "));
    }
    let (kept, missing): (Vec<Type>, Vec<Type>) =
        all.iter().partition(|one| named.contains(&one.proto_name()));
    match missing.iter().find(|one| **one != Type::RESIZE_VOLUME) {
        Some(needed) => bail!("--agent_features: {} is missing and required", needed.proto_name()),
        None => Ok(kept),
    }
}

pub fn default_container(text: &str) -> Result<ContainerInfo> {
    let text = access::json_or_file("default_container_info", text)?;
    let container: ContainerInfo = tepui_proto::json::from_slice(&text)
        .map_err(|reason| anyhow!("--default_container_info: {reason}"))?;
    ensure!(
        container.r#type == container_info::Type::MESOS,
        "--default_container_info: type must be MESOS; a task names a container of type DOCKER itself"
    );
    Ok(container)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Type; 3] = [Type::MULTI_ROLE, Type::RESIZE_VOLUME, Type::AGENT_DRAINING];

    #[test]
    fn features_are_validated() {
        let table = [
            (
                r#"{"capabilities":[{"type":"MULTI_ROLE"},{"type":"AGENT_DRAINING"}]}"#,
                "MULTI_ROLE AGENT_DRAINING",
            ),
            (
                r#"{"capabilities":[{"type":"MULTI_ROLE"}]}"#,
                "--agent_features: AGENT_DRAINING is missing and required",
            ),
            (
                r#"{"capabilities":[{"type":"FLYING"}]}"#,
                "--agent_features: unknown capability FLYING; capabilities: MULTI_ROLE, RESIZE_VOLUME, AGENT_DRAINING",
            ),
            ("{}", "--agent_features: missing field `capabilities` at line 1 column 2"),
        ];
        for (text, expected) in table {
            let result = match capabilities(text, &ALL) {
                Ok(kept) => kept.iter().map(|one| one.proto_name()).collect::<Vec<_>>().join(" "),
                Err(reason) => reason.to_string(),
            };
            assert_eq!(result, expected);
        }
    }

    #[test]
    fn default_container_must_be_a_mesos_container() {
        assert!(default_container(r#"{"type":"MESOS","mesos":{}}"#).is_ok());
        for text in [r#"{"type":"DOCKER","docker":{"image":"x"}}"#, r#"{"mesos":{}}"#, "{"] {
            let reason = default_container(text).unwrap_err().to_string();
            assert!(reason.starts_with("--default_container_info: "), "{reason}");
        }
    }
}
