//! `--agent_features` and `--default_container_info`: what an agent says that it can do, and how it runs whoever does not say.

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

/// What the flag names of all that the agent can; v1 lets only RESIZE_VOLUME be left out.
pub fn capabilities(text: &str, all: &[Type]) -> Result<Vec<Type>> {
    let features: Features = serde_json::from_str(text).map_err(|why| anyhow!("--agent_features: {why}"))?;
    let named: Vec<&str> = features.capabilities.iter().map(|feature| feature.r#type.as_str()).collect();
    if let Some(other) = named.iter().find(|name| all.iter().all(|one| one.proto_name() != **name)) {
        let known: Vec<&str> = all.iter().map(|one| one.proto_name()).collect();
        bail!("--agent_features: {other} is nothing that an agent can; there are: {}", known.join(", "));
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
    let container: ContainerInfo =
        tepui_proto::json::from_slice(&text).map_err(|why| anyhow!("--default_container_info: {why}"))?;
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
    fn features_are_those_it_has() {
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
                "--agent_features: FLYING is nothing that an agent can; there are: MULTI_ROLE, RESIZE_VOLUME, AGENT_DRAINING",
            ),
            ("{}", "--agent_features: missing field `capabilities` at line 1 column 2"),
        ];
        for (text, expected) in table {
            let said = match capabilities(text, &ALL) {
                Ok(kept) => kept.iter().map(|one| one.proto_name()).collect::<Vec<_>>().join(" "),
                Err(why) => why.to_string(),
            };
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn a_default_container_is_one_of_ours() {
        assert!(default_container(r#"{"type":"MESOS","mesos":{}}"#).is_ok());
        for text in [r#"{"type":"DOCKER","docker":{"image":"x"}}"#, r#"{"mesos":{}}"#, "{"] {
            let why = default_container(text).unwrap_err().to_string();
            assert!(why.starts_with("--default_container_info: "), "{why}");
        }
    }
}
