//! Quotas: valid requests, the capacity of the cluster, and offers to rescind.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_resources::{Limits, Name, Quantities, Resources, Role, Scalar};
use tepui_types::OfferId;

use crate::entities::offer;
use crate::master::{Master, Out};
use crate::rules::allocator_spec;
use crate::validate::framework::role_name;

/// The greatest amount of megabytes that makes sense: an exabyte.
const MEGABYTES_MAX: f64 = (1u64 << 40) as f64;
/// The greatest amount of anything else.
const AMOUNT_MAX: f64 = 1e12;

/// Validates a quota, independent of the caller.
pub(crate) fn check(master: &Master, config: &QuotaConfig) -> Result<(), String> {
    let role = config.role.as_str();
    check_role(master, role)?;
    let amounts = config.guarantees.iter().chain(&config.limits);
    for (name, amount) in amounts {
        check_amount(name, amount.value).map_err(|why| format!("Quota of role '{role}': {why}"))?;
    }
    for (name, guarantee) in &config.guarantees {
        if config.limits.get(name).is_some_and(|limit| limit.value < guarantee.value) {
            return Err(format!("Quota of role '{role}': the guarantee of '{name}' is above its limit"));
        }
    }
    Ok(())
}

/// Whether operators may set quota for this role.
pub(crate) fn check_role(master: &Master, role: &str) -> Result<(), String> {
    role_name(role).map_err(|why| format!("Invalid role '{role}': {why}"))?;
    if role.contains('/') {
        return Err(format!("Setting quota on nested role '{role}' is not supported"));
    }
    let known = master.config.roles.as_ref().is_none_or(|roles| roles.iter().any(|known| known == role));
    if known || role == "*" { Ok(()) } else { Err(format!("Unknown role '{role}'")) }
}

fn check_amount(name: &str, amount: f64) -> Result<(), String> {
    let most = if ["mem", "disk"].contains(&name) { MEGABYTES_MAX } else { AMOUNT_MAX };
    if name.is_empty() {
        return Err("a resource has no name".into());
    }
    if !amount.is_finite() || amount < 0.0 || amount.is_subnormal() {
        return Err(format!("{amount} of '{name}' is not a valid amount"));
    }
    if amount > most {
        return Err(format!("{amount} of '{name}' is more than {most}"));
    }
    Ok(())
}

/// Whether the cluster has what is guaranteed if these quotas are set too; what is wrong if not.
pub(crate) fn check_capacity<'a>(
    master: &Master,
    configs: impl IntoIterator<Item = &'a QuotaConfig>,
) -> Result<(), String> {
    let mut all: BTreeMap<&str, &QuotaConfig> =
        master.state.quotas.iter().map(|(role, config)| (role.as_str(), &**config)).collect();
    all.extend(configs.into_iter().map(|config| (config.role.as_str(), config)));
    let mut guaranteed = Quantities::new();
    all.values().for_each(|config| guaranteed += &allocator_spec::quota(config).guarantees);
    let totals = master.state.agents.values().map(|agent| agent.total.non_revocable());
    let capacity = totals.fold(Quantities::new(), |mut sum, total| {
        sum += &total.scalar_quantities();
        sum
    });
    match capacity.contains(&guaranteed) {
        true => Ok(()),
        false => Err(format!(
            "Total quota guarantees '{}' exceed cluster capacity '{}'",
            listed(&guaranteed),
            listed(&capacity)
        )),
    }
}

/// By name, as v1 lists them.
fn listed(amounts: &Quantities) -> String {
    let mut amounts: Vec<_> =
        amounts.iter().map(|(name, amount)| format!("{}:{}", name.as_str(), amount.to_f64())).collect();
    amounts.sort_unstable();
    amounts.join("; ")
}

/// Whether the role's used and reserved resources fit its limits; offers do not count, they can be rescinded.
pub(crate) fn check_consumption(master: &Master, config: &QuotaConfig) -> Result<(), String> {
    let role = Role::from(config.role.as_str());
    let mut consumed = master.allocator.consumed(&role);
    for id in offers_below(master, &role, true) {
        consumed -= &plain_offered(master, &id);
    }
    match allocator_spec::quota(config).limits.contains(&consumed) {
        true => Ok(()),
        false => Err(format!(
            "Role '{role}' already consumes '{}', which is above the new limits (use 'force' to bypass this check)",
            listed(&consumed)
        )),
    }
}

/// Sets quotas that were checked, or takes them away, and takes back offers that stand in their way.
pub(crate) fn set(master: &mut Master, configs: BTreeMap<String, Option<QuotaConfig>>, out: &mut Out) {
    master.changed = true;
    for (role, config) in &configs {
        let quota = config.as_ref().map(allocator_spec::quota).unwrap_or_default();
        master.allocator.set_quota(&Role::from(role.as_str()), quota);
        match config {
            Some(config) => master.state.quotas.insert_mut(role.clone(), Arc::new(config.clone())),
            None => drop(master.state.quotas.remove_mut(role)),
        }
    }
    let roles: Vec<Role> = configs.keys().map(|role| Role::from(role.as_str())).collect();
    let record = master.registry.set_quotas(configs);
    master.record(record, out);
    for role in &roles {
        keep_limits(master, role, out);
    }
    for role in &roles {
        keep_guarantees(master, role, out);
    }
}

/// Takes back what is offered to the role and above its limits.
fn keep_limits(master: &mut Master, role: &Role, out: &mut Out) {
    let Some(limits) = master.allocator.quota(role).map(|quota| quota.limits.clone()) else { return };
    for id in offers_below(master, role, true) {
        if limits.contains(&master.allocator.consumed(role)) {
            return;
        }
        if helps(&limits, &plain_offered(master, &id)) {
            offer::rescind(master, &id, out);
        }
    }
}

fn helps(limits: &Limits, offered: &Quantities) -> bool {
    offered.iter().any(|(name, amount)| limits.get(name).is_some() && !amount.is_zero())
}

/// Takes back what is offered to others until what is guaranteed to the role can be offered to it.
fn keep_guarantees(master: &mut Master, role: &Role, out: &mut Out) {
    let Some(quota) = master.allocator.quota(role) else { return };
    let lacking = quota.guarantees.clone() - &master.allocator.consumed(role);
    let agents: BTreeSet<_> = master
        .state
        .agents
        .iter()
        .filter(|(_, agent)| agent.is_offered())
        .map(|(id, _)| id.clone())
        .collect();
    let mut free = Quantities::new();
    for resources in agents.iter().filter_map(|id| master.allocator.free(id)) {
        free += &plain(resources);
    }
    for id in offers_below(master, role, false) {
        let lack = lacking.clone() - &free;
        if lack.is_empty() {
            return;
        }
        let offered = plain_offered(master, &id);
        if lack.iter().any(|(name, _)| !offered.get(name).is_zero()) {
            offer::rescind(master, &id, out);
            free += &offered;
        }
    }
}

/// The offers made in this role and below it, or the others.
fn offers_below(master: &Master, role: &Role, below: bool) -> Vec<OfferId> {
    let is_below = |other: &str| {
        let other = Role::from(other);
        other == *role || other.is_strict_subrole_of(role)
    };
    let offers = master.state.offers.values().filter(|offer| is_below(&offer.role) == below);
    offers.map(|offer| offer.id.clone()).collect()
}

/// What counts of an offer.
fn plain_offered(master: &Master, id: &OfferId) -> Quantities {
    master.state.offers.get(id).map_or_else(Quantities::new, |offer| plain(&offer.resources))
}

fn plain(resources: &Resources) -> Quantities {
    resources.unreserved().non_revocable().scalar_quantities()
}

/// The quota of a request in the old form: its guarantee is its limit too.
pub(crate) fn from_request(request: &pb::quota::QuotaRequest) -> Result<QuotaConfig, String> {
    let role = request.role.as_deref().ok_or("Quota role is missing")?;
    if request.guarantee.is_empty() {
        return Err("Quota guarantee is empty".into());
    }
    let mut amounts = BTreeMap::new();
    for resource in &request.guarantee {
        let name = &resource.name;
        tepui_resources::validate::resource(resource).map_err(|why| why.to_string())?;
        let plain = resource.r#type == pb::value::Type::SCALAR
            && !resource.reservation.is_set()
            && resource.reservations.is_empty()
            && resource.role.as_deref().is_none_or(|role| role == "*")
            && !resource.disk.is_set()
            && !resource.revocable.is_set()
            && !resource.shared.is_set();
        if !plain {
            return Err(format!("Quota guarantee of '{name}' is not an unreserved scalar"));
        }
        let amount = Scalar::from_f64(resource.scalar.value).map_err(|why| why.to_string())?;
        let value = pb::value::Scalar { value: amount.to_f64(), ..Default::default() };
        if amounts.insert(Name::new(name).as_str().into(), value).is_some() {
            return Err(format!("Quota guarantee names '{name}' twice"));
        }
    }
    Ok(QuotaConfig { role: role.into(), guarantees: amounts.clone(), limits: amounts, ..Default::default() })
}
