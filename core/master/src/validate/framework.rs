//! FrameworkInfo by itself.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as Capability;
use tepui_resources::{RoleError, check_role};
use tepui_types::check_id;

/// The longest timeout, in seconds: what fits into 64 bits of nanoseconds.
const TIMEOUT_SECONDS_MAX: f64 = i64::MAX as f64 / 1e9;

pub(crate) fn info(info: &pb::FrameworkInfo) -> Result<(), String> {
    roles(info)?;
    if let Some(id) = info.id.as_option().filter(|id| !id.value.is_empty()) {
        check_id(&id.value).map_err(|why| format!("'FrameworkInfo.id' is invalid: {why}"))?;
    }
    info.offer_filters.iter().try_for_each(|(role, filters)| offer_filters(role, filters))?;
    let timeout = info.failover_timeout.unwrap_or(0.0);
    match timeout.abs() <= TIMEOUT_SECONDS_MAX {
        true => Ok(()),
        false => {
            Err(format!("'FrameworkInfo.failover_timeout' is not a usable number of seconds: {timeout}"))
        }
    }
}

fn roles(info: &pb::FrameworkInfo) -> Result<(), String> {
    let multi_role = info.capabilities.iter().any(|can| can.r#type == Some(Capability::MULTI_ROLE));
    if multi_role && info.role.is_some() {
        return Err("'FrameworkInfo.role' must not be set when the framework is MULTI_ROLE capable".into());
    }
    if !multi_role && !info.roles.is_empty() {
        return Err(
            "'FrameworkInfo.roles' must not be set when the framework is not MULTI_ROLE capable".into()
        );
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = info.roles.iter().find(|role| !seen.insert(role.as_str())) {
        return Err(format!("'FrameworkInfo.roles' contains a duplicate: {twice}"));
    }
    for role in &info.roles {
        role_name(role).map_err(|why| format!("'FrameworkInfo.roles' contains invalid role: {why}"))?;
    }
    match info.role.as_deref().map(role_name) {
        Some(Err(why)) => Err(format!("'FrameworkInfo.role' is not a valid role: {why}")),
        Some(Ok(())) | None => Ok(()),
    }
}

/// The role rule with the role in the sentence.
pub(crate) fn role_name(role: &str) -> Result<(), String> {
    let what = match check_role(role) {
        Ok(()) => return Ok(()),
        Err(RoleError::Empty) => return Err("Empty role name is invalid".into()),
        Err(RoleError::StartsWithSlash) => "cannot start with a slash",
        Err(RoleError::EndsWithSlash) => "cannot end with a slash",
        Err(RoleError::DoubleSlash) => "cannot contain two adjacent slashes",
        Err(RoleError::Dot) => "cannot contain '.' as a component",
        Err(RoleError::DotDot) => "cannot contain '..' as a component",
        Err(RoleError::Star) => "cannot contain '*' as a component",
        Err(RoleError::StartsWithDash) => "cannot have a component that starts with a dash",
        Err(RoleError::Forbidden(c)) => {
            return Err(format!("Role '{role}' cannot contain the character {c:?}"));
        }
    };
    Err(format!("Role '{role}' {what}"))
}

fn offer_filters(role: &str, filters: &pb::OfferFilters) -> Result<(), String> {
    let place = format!("'FrameworkInfo.offer_filters' of role '{role}'");
    for alternative in &filters.min_allocatable_resources.quantities {
        if alternative.quantities.is_empty() {
            return Err(format!("{place} has an empty entry in 'min_allocatable_resources.quantities'"));
        }
        for (name, scalar) in &alternative.quantities {
            let value = scalar.value;
            if !value.is_finite() || value.is_subnormal() || value < 0.0 {
                return Err(format!("{place} has an invalid quantity of '{name}': {value}"));
            }
        }
    }
    Ok(())
}
