//! linux/capabilities: the capabilities of a command, and those it can ever gain.
//!
//! A container's request overrides the operator's default; the operator's bounding set limits both.

use tepui_proto::Enumeration;
use tepui_proto::mesos::v1::{self as pb, capability_info::Capability};

use super::fault::{FlagFault, PlanFault};
use super::site::Site;
use crate::plan::{Capabilities, Plan};

/// The first capability has this number in the protocol, and zero in the kernel.
const FIRST: i32 = 1000;

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    let info = site.linux_info();
    let set = |info: &pb::CapabilityInfo, field: &'static str| {
        bits(&info.capabilities).ok_or(PlanFault::UnknownCapability(field))
    };
    let asked = |field: &'static str, value: Option<&pb::CapabilityInfo>| {
        value.map(|value| set(value, field)).transpose()
    };
    let old = asked("capability_info", info.and_then(|info| info.capability_info.as_option()))?;
    let effective =
        asked("effective_capabilities", info.and_then(|info| info.effective_capabilities.as_option()))?;
    let bounding =
        asked("bounding_capabilities", info.and_then(|info| info.bounding_capabilities.as_option()))?;
    if old.is_some() && effective.is_some() {
        return Err(PlanFault::TwoCapabilitySets);
    }
    let options = &site.options;
    if let (true, Some(asked)) = (site.spec.no_root, effective.or(old)) {
        // A user that may not be root gets only capabilities that the operator has named.
        check_within(asked, options.bounding_capabilities.or(options.effective_capabilities).unwrap_or(0))?;
    }
    if let (Some(asked), Some(most)) = (bounding, options.bounding_capabilities) {
        check_within(asked, most)?;
    }
    let effective = effective.or(old).or(options.effective_capabilities);
    let bounding = bounding.or(options.bounding_capabilities).or(effective);
    let Some(bounding) = bounding else { return Ok(()) };
    if let Some(effective) = effective {
        check_within(effective, bounding)?;
    }
    plan.capabilities = Some(Capabilities { effective, bounding });
    Ok(())
}

fn check_within(requested: u64, allowed: u64) -> Result<(), PlanFault> {
    match requested & !allowed {
        0 => Ok(()),
        _ => Err(PlanFault::Capabilities { requested: names(requested), allowed: names(allowed) }),
    }
}

/// The value of a flag.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    capabilities: Vec<String>,
}

/// From the value of a flag, `{"capabilities":["NET_RAW"]}`, to bits by the kernel's numbers.
pub fn parse(text: &str) -> Result<u64, FlagFault> {
    const RIGHT: &str = r#"write {"capabilities":["NET_RAW","MKNOD"]}"#;
    let named: Named = serde_json::from_str(text).map_err(|err| FlagFault::Json { err, right: RIGHT })?;
    named.capabilities.iter().try_fold(0, |bits, name| {
        let known = Capability::from_proto_name(name).and_then(number);
        let unknown = || FlagFault::UnknownCapability { name: name.clone(), right: RIGHT };
        Ok(bits | 1 << known.ok_or_else(unknown)?)
    })
}

/// As bits by the kernel's numbers; `None` if one is not known.
pub(crate) fn bits(capabilities: &[Capability]) -> Option<u64> {
    capabilities.iter().try_fold(0, |bits, one| Some(bits | 1 << number(*one)?))
}

pub(super) fn number(capability: Capability) -> Option<u32> {
    u32::try_from(capability as i32 - FIRST).ok().filter(|number| *number < u64::BITS)
}

fn names(bits: u64) -> String {
    let known = (0..u64::BITS).filter(|number| bits & (1 << number) != 0);
    let name = |number: u32| {
        let capability = Capability::from_i32(number.cast_signed() + FIRST).unwrap_or(Capability::UNKNOWN);
        format!("{capability:?}")
    };
    format!("{{ {} }}", known.map(name).collect::<Vec<_>>().join(", "))
}
