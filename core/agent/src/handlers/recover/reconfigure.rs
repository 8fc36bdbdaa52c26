//! Whether an agent that was started with other flags may keep its identity.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::Resources;

const PORT: i32 = 5051;

/// Why the agent is not the one it was; `additive` allows more resources and attributes than before. Each has its
/// resources beside it.
pub(super) fn problem(
    (old, old_total): (&pb::AgentInfo, &Resources),
    (new, new_total): (&pb::AgentInfo, &Resources),
    additive: bool,
) -> Option<String> {
    if old.hostname != new.hostname {
        return Some(format!("its hostname was '{}' and is '{}'", old.hostname, new.hostname));
    }
    let (was, is) = (old.port.unwrap_or(PORT), new.port.unwrap_or(PORT));
    if was != is {
        return Some(format!("its port was {was} and is {is}"));
    }
    if old.domain != new.domain && (old.domain.is_set() || !additive) {
        return Some("its domain changed".into());
    }
    if if additive { !new_total.contains(old_total) } else { old_total != new_total } {
        return Some(format!("its resources were {old_total} and are {new_total}"));
    }
    if !additive && old.attributes.len() != new.attributes.len() {
        return Some("attributes were added or removed".into());
    }
    let lost = old.attributes.iter().find(|old| !new.attributes.iter().any(|new| keeps(old, new, additive)));
    lost.map(|attribute| format!("its attribute '{}' changed", attribute.name))
}

fn keeps(old: &pb::Attribute, new: &pb::Attribute, additive: bool) -> bool {
    if old.name != new.name || old.r#type != new.r#type {
        return false;
    }
    match old.r#type {
        pb::value::Type::RANGES if additive => {
            let covered = |range: &pb::value::Range| {
                new.ranges.range.iter().any(|wide| wide.begin <= range.begin && range.end <= wide.end)
            };
            old.ranges.range.iter().all(covered)
        }
        pb::value::Type::RANGES | pb::value::Type::SCALAR | pb::value::Type::SET | pb::value::Type::TEXT => {
            old == new
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::tests::driver::resources;

    fn info(given: &str, attributes: &[(&str, f64)]) -> pb::AgentInfo {
        let attribute = |(name, value): &(&str, f64)| pb::Attribute {
            name: (*name).into(),
            r#type: pb::value::Type::SCALAR,
            scalar: pb::value::Scalar { value: *value, ..Default::default() }.into(),
            ..Default::default()
        };
        let attributes: Vec<pb::Attribute> = attributes.iter().map(attribute).collect();
        pb::AgentInfo { hostname: "h".into(), resources: resources(given), attributes, ..Default::default() }
    }

    fn compared(old: &pb::AgentInfo, new: &pb::AgentInfo, additive: bool) -> Option<String> {
        let total = |info: &pb::AgentInfo| Resources::from_proto(&info.resources).expect("valid");
        problem((old, &total(old)), (new, &total(new)), additive)
    }

    #[test]
    fn additive_reconfiguration_rules() {
        let old = info("cpus:2;mem:64", &[("rack", 1.0)]);
        let renamed = pb::AgentInfo { hostname: "other".into(), ..old.clone() };
        let moved = pb::AgentInfo { port: Some(1), ..old.clone() };
        for (new, equal, additive) in [
            (old.clone(), true, true),
            (info("cpus:3;mem:64", &[("rack", 1.0)]), false, true),
            (info("cpus:3;mem:64;gpus:1", &[("rack", 1.0), ("row", 2.0)]), false, true),
            (info("cpus:1;mem:64", &[("rack", 1.0)]), false, false),
            (info("cpus:2;mem:64", &[("rack", 2.0)]), false, false),
            (info("cpus:2;mem:64", &[]), false, false),
            (renamed, false, false),
            (moved, false, false),
        ] {
            assert_eq!(compared(&old, &new, false).is_none(), equal, "{new:?}");
            assert_eq!(compared(&old, &new, true).is_none(), additive, "{new:?}");
        }
        assert_eq!(
            compared(&old, &info("cpus:2;mem:64", &[("rack", 2.0)]), true).as_deref(),
            Some("its attribute 'rack' changed")
        );
    }
}
