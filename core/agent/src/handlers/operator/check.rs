//! Validation of LAUNCH_CONTAINER, for all kinds of containers: resources, limits, and the cgroups in use.

use alloc::format;

use tepui_proto::mesos::v1::agent::call::LaunchContainer;
use tepui_resources::{Resources, Scalar};
use tepui_types::{ContainerId, Rejection};

use super::invalid;
use crate::Config;
use crate::rules::limits::missing_isolator;

/// How deep below others a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    Alone,
    Nested,
    /// Below one that is nested itself: checks and sessions. All of it is counted with its parent's.
    Deep,
}

impl Depth {
    fn of(id: &ContainerId) -> Self {
        match id.parent() {
            None => Depth::Alone,
            Some(parent) if parent.parent().is_none() => Depth::Nested,
            Some(_) => Depth::Deep,
        }
    }
}

/// The resources of the call, if it is valid.
pub(super) fn check(
    config: &Config,
    id: &ContainerId,
    call: &LaunchContainer,
) -> Result<Resources, Rejection> {
    let resources = Resources::from_proto(&call.resources).map_err(invalid)?;
    let own_cgroups = call.container.linux_info.share_cgroups.map(|shared| !shared);
    match (Depth::of(id), own_cgroups) {
        (Depth::Deep, _) if !call.resources.is_empty() || !call.limits.is_empty() => {
            return Err(invalid("resources and limits cannot be set below a nested container"));
        }
        (Depth::Deep, Some(true)) => {
            return Err(invalid("'linux_info.share_cgroups' cannot be false below a nested container"));
        }
        (Depth::Nested, None | Some(false)) if !call.limits.is_empty() => {
            return Err(invalid("limits of a nested container need 'linux_info.share_cgroups' to be false"));
        }
        (Depth::Alone, Some(false)) => {
            return Err(invalid("'linux_info.share_cgroups' cannot be true for a container without parent"));
        }
        (Depth::Alone, None | Some(true)) => check_alone(&resources)?,
        (Depth::Nested | Depth::Deep, _) => (),
    }
    check_limits(config, call, &resources)?;
    match missing_isolator(&config.isolation, &call.limits) {
        Some(problem) => Err(invalid(problem)),
        None => Ok(resources),
    }
}

fn check_alone(resources: &Resources) -> Result<(), Rejection> {
    let is_somebodys = |one: &tepui_resources::Resource| {
        one.is_reserved() || one.is_revocable() || one.is_persistent_volume()
    };
    match resources.iter().any(is_somebodys) {
        true => Err(invalid(
            "a standalone container can use neither reserved nor revocable resources nor volumes",
        )),
        false => Ok(()),
    }
}

fn check_limits(config: &Config, call: &LaunchContainer, resources: &Resources) -> Result<(), Rejection> {
    for (name, limit) in &call.limits {
        let limit = limit.value;
        let request = match name.as_str() {
            "cpus" => resources.cpus(),
            "mem" => resources.mem(),
            _ => return Err(invalid(format!("limits apply to 'cpus' and 'mem', not to '{name}'"))),
        };
        if limit.is_nan() || limit == f64::NEG_INFINITY {
            return Err(invalid(format!("'limits.{name}' must be a number or Infinity, not {limit}")));
        }
        if request == Scalar::ZERO && !config.best_effort_tasks {
            return Err(invalid(format!("'limits.{name}' needs '{name}' among the resources")));
        }
        // What cannot be counted is infinite, or so large that it may as well be.
        if limit < 0.0 || Scalar::from_f64(limit).is_ok_and(|limit| limit < request) {
            return Err(invalid(format!("'limits.{name}' is less than the request of {request}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use tepui_proto::json;

    use super::*;

    const BOTH: [&str; 2] = ["cgroups/cpu", "cgroups/mem"];

    fn checked(isolation: &[&str], text: &str) -> String {
        let text = text.replace('\'', "\"").replace(
            "REQUEST",
            r#""resources":[{"name":"cpus","type":"SCALAR","scalar":{"value":1}},{"name":"mem","type":"SCALAR","scalar":{"value":32}}]"#,
        );
        let call: LaunchContainer = json::from_slice(text.as_bytes()).expect("a call");
        let isolation = isolation.iter().map(|name| (*name).into()).collect();
        let id = ContainerId::from(&*call.container_id);
        let refused = check(&Config { isolation, ..Config::default() }, &id, &call)
            .err()
            .map(|refusal| refusal.message);
        let refused = refused.unwrap_or_default();
        refused.trim_start_matches("Failed to validate agent::Call: ").into()
    }

    #[test]
    fn operator_calls_are_authorized() {
        let alone = "'container_id':{'value':'a'}";
        let nested = "'container_id':{'value':'a','parent':{'value':'p'}}";
        let deep = "'container_id':{'value':'a','parent':{'value':'p','parent':{'value':'q'}}}";
        let own = "'container':{'type':'MESOS','linux_info':{'share_cgroups':false}}";
        let shared = "'container':{'type':'MESOS','linux_info':{'share_cgroups':true}}";
        let limits = "'limits':{'mem':{'value':64}}";
        for (call, expected) in [
            (format!("{{{alone},REQUEST,{limits}}}"), ""),
            (format!("{{{alone},{own},REQUEST}}"), ""),
            (
                format!("{{{alone},{shared}}}"),
                "'linux_info.share_cgroups' cannot be true for a container without parent",
            ),
            (
                format!(
                    "{{{alone},'resources':[{{'name':'cpus','type':'SCALAR','scalar':{{'value':1}},'revocable':{{}}}}]}}"
                ),
                "a standalone container can use neither reserved nor revocable resources nor volumes",
            ),
            (format!("{{{nested},REQUEST}}"), ""),
            (format!("{{{nested},{own},REQUEST,{limits}}}"), ""),
            (
                format!("{{{nested},REQUEST,{limits}}}"),
                "limits of a nested container need 'linux_info.share_cgroups' to be false",
            ),
            (format!("{{{deep}}}"), ""),
            (format!("{{{deep},{shared}}}"), ""),
            (format!("{{{deep},REQUEST}}"), "resources and limits cannot be set below a nested container"),
            (format!("{{{deep},{limits}}}"), "resources and limits cannot be set below a nested container"),
            (
                format!("{{{deep},{own}}}"),
                "'linux_info.share_cgroups' cannot be false below a nested container",
            ),
        ] {
            assert_eq!(checked(&BOTH, &call), expected, "{call}");
        }
    }

    #[test]
    fn limits_are_valid_and_enforced_by_an_isolator() {
        let limited =
            |limits: &str| format!("{{'container_id':{{'value':'a'}},REQUEST,'limits':{{{limits}}}}}");
        for (limits, expected) in [
            ("'cpus':{'value':1},'mem':{'value':'Infinity'}", ""),
            ("'disk':{'value':1}", "limits apply to 'cpus' and 'mem', not to 'disk'"),
            ("'cpus':{'value':0.5}", "'limits.cpus' is less than the request of 1"),
            ("'mem':{'value':-1}", "'limits.mem' is less than the request of 32"),
            ("'mem':{'value':'-Infinity'}", "'limits.mem' must be a number or Infinity, not -inf"),
        ] {
            assert_eq!(checked(&BOTH, &limited(limits)), expected, "{limits}");
        }
        let without = "{'container_id':{'value':'a'},'limits':{'mem':{'value':1}}}";
        assert_eq!(checked(&BOTH, without), "'limits.mem' needs 'mem' among the resources");
        let call: LaunchContainer = json::from_slice(without.replace('\'', "\"").as_bytes()).expect("a call");
        let config =
            Config { isolation: BOTH.map(Into::into).into(), best_effort_tasks: true, ..Config::default() };
        let id = ContainerId::from(&*call.container_id);
        assert!(check(&config, &id, &call).is_ok(), "unless nothing need be asked for");
        assert_eq!(
            checked(&["cgroups/cpu"], &limited("'mem':{'value':64}")),
            "A limit on 'mem' needs the isolator 'cgroups/mem', which this agent lacks"
        );
        assert_eq!(checked(&["cgroups/all"], &limited("'mem':{'value':64}")), "");
    }
}
