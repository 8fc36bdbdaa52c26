//! Conversion of v1 messages to the specifications of agents and frameworks that the allocator takes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_allocator::{
    AgentCapabilities, AgentSpec, Allocator, Attribute, AttributeConstraint, AttributeValue, Domain,
    FrameworkCapabilities, FrameworkSpec, MinAllocatable, OfferConstraints, Options, Pattern, Predicate,
    Quota, Selector,
};
use tepui_fsm::Rng;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as Capability;
use tepui_proto::mesos::v1::scheduler;
use tepui_proto::mesos::v1::scheduler::attribute_constraint::selector::PseudoattributeType;
use tepui_registry::Registry;
use tepui_resources::{Limits, Name, Quantities, Role, Scalar};

use crate::Config;
use crate::state::{Agent, Framework};

/// The validated parts of a subscription; only `framework::check` makes them.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    pub(crate) suppressed: BTreeSet<String>,
    pub(crate) constraints: Option<Arc<scheduler::OfferConstraints>>,
    pub(crate) compiled: tepui_allocator::OfferConstraints,
}

impl Terms {
    pub(crate) fn on(&self, framework: Framework) -> Framework {
        Framework {
            suppressed_roles: self.suppressed.iter().cloned().collect(),
            offer_constraints: self.constraints.clone(),
            ..framework
        }
    }
}

/// An allocator with the configured options and the weights of the registry.
pub(crate) fn allocator(config: &Config, registry: &Registry, rng: &mut Rng) -> Allocator {
    let region = domain(config.master_info.domain.as_option()).map(|domain| domain.region);
    let excluded = config.fair_sharing_excluded_resource_names.iter();
    let mut allocator = Allocator::new(Options {
        allocation_interval: config.allocation_interval,
        min_allocatable: config.min_allocatable().unwrap_or_else(|_| MinAllocatable::usual()),
        filter_gpu_resources: config.filter_gpu_resources,
        fair_sharing_excluded: excluded.map(|name| Name::new(name)).collect(),
        agent_recovery_factor: config.allocator_agent_recovery_factor,
        recovery_timeout: config.allocator_recovery_timeout,
        region,
        role_sorter: config.role_sorter,
        framework_sorter: config.framework_sorter,
        allocation_slack: config.allocation_slack,
        allocation_slack_opt_out: roles(config.allocation_slack_opt_out.iter().cloned()),
        seed: rng.next_u64(),
    });
    let weights: BTreeMap<Role, f64> =
        registry.weights.iter().map(|(role, weight)| (Role::from(role.as_str()), *weight)).collect();
    allocator.set_weights(&weights);
    allocator.set_whitelist(config.whitelist.clone());
    for (role, config) in &registry.quotas {
        allocator.set_quota(&Role::from(role.as_str()), quota(config));
    }
    allocator
}

/// A quota that was checked; what is not is nothing.
pub(crate) fn quota(config: &pb::quota::QuotaConfig) -> Quota {
    let amount = |value: &pb::value::Scalar| Scalar::from_f64(value.value).unwrap_or(Scalar::ZERO);
    let mut limits = Limits::default();
    config.limits.iter().for_each(|(name, value)| limits.set(&Name::new(name), amount(value)));
    let guarantees = config.guarantees.iter().map(|(name, value)| (Name::new(name), amount(value)));
    Quota { guarantees: guarantees.collect(), limits }
}

pub(crate) fn agent(agent: &Agent) -> AgentSpec {
    use pb::agent_info::capability::Type;
    AgentSpec {
        hostname: Arc::from(agent.info.hostname.as_str()),
        attributes: agent.info.attributes.iter().map(attribute).collect(),
        domain: domain(agent.info.domain.as_option()),
        capabilities: AgentCapabilities {
            multi_role: agent.has(Type::MULTI_ROLE),
            hierarchical_role: agent.has(Type::HIERARCHICAL_ROLE),
            reservation_refinement: agent.has(Type::RESERVATION_REFINEMENT),
        },
        total: agent.total.clone(),
    }
}

pub(crate) fn framework(framework: &Framework, terms: Terms) -> FrameworkSpec {
    FrameworkSpec {
        id: framework.id.clone(),
        roles: roles(framework.roles()),
        suppressed: roles(terms.suppressed),
        capabilities: FrameworkCapabilities {
            gpu_resources: framework.has(Capability::GPU_RESOURCES),
            revocable_resources: framework.has(Capability::REVOCABLE_RESOURCES),
            shared_resources: framework.has(Capability::SHARED_RESOURCES),
            reservation_refinement: framework.has(Capability::RESERVATION_REFINEMENT),
            multi_role: framework.has(Capability::MULTI_ROLE),
            region_aware: framework.has(Capability::REGION_AWARE),
        },
        constraints: terms.compiled,
        min_allocatable: min_allocatable(&framework.info),
        active: framework.conn().is_some(),
    }
}

fn roles(names: impl IntoIterator<Item = String>) -> BTreeSet<Role> {
    names.into_iter().map(|name| Role::from(name.as_str())).collect()
}

fn domain(domain: Option<&pb::DomainInfo>) -> Option<Domain> {
    let fault = domain?.fault_domain.as_option()?;
    let (region, zone) = (fault.region.name.as_str(), fault.zone.name.as_str());
    Some(Domain { region: Arc::from(region), zone: Arc::from(zone) })
}

fn attribute(attribute: &pb::Attribute) -> Attribute {
    let value = match attribute.r#type {
        pb::value::Type::TEXT => AttributeValue::Text(Arc::from(attribute.text.value.as_str())),
        pb::value::Type::SCALAR | pb::value::Type::RANGES | pb::value::Type::SET => AttributeValue::NotText,
    };
    Attribute { name: Arc::from(attribute.name.as_str()), value }
}

/// `offer_filters`, which the framework's check found to be right.
fn min_allocatable(info: &pb::FrameworkInfo) -> BTreeMap<Role, MinAllocatable> {
    let of = |filter: &pb::OfferFilters| {
        let quantities = &filter.min_allocatable_resources.as_option()?.quantities;
        let alternatives = quantities.iter().map(|least| -> Quantities {
            let amount = |value: &pb::value::Scalar| Scalar::from_f64(value.value).unwrap_or(Scalar::ZERO);
            least.quantities.iter().map(|(name, value)| (Name::new(name), amount(value))).collect()
        });
        Some(MinAllocatable::new(alternatives.collect()))
    };
    let filters = info.offer_filters.iter();
    filters.filter_map(|(role, filter)| Some((Role::from(role.as_str()), of(filter)?))).collect()
}

/// Offer constraints as the allocator checks them; what is wrong with them if they cannot be.
pub(crate) fn constraints(
    constraints: Option<&scheduler::OfferConstraints>,
    roles: &[String],
) -> Result<OfferConstraints, String> {
    let mut compiled = OfferConstraints::default();
    for (role, of_role) in constraints.into_iter().flat_map(|constraints| &constraints.role_constraints) {
        if !roles.contains(role) {
            return Err(format!(
                "Offer constraints name role '{role}', which is not among the framework's roles"
            ));
        }
        if of_role.groups.is_empty() {
            return Err(format!("Offer constraints of role '{role}' have no group"));
        }
        let groups = of_role.groups.iter().map(group).collect::<Result<_, _>>();
        let groups =
            groups.map_err(|why| format!("Offer constraints of role '{role}' are not valid: {why}"))?;
        compiled.roles.insert(Role::from(role.as_str()), groups);
    }
    Ok(compiled)
}

fn group(
    group: &scheduler::offer_constraints::role_constraints::Group,
) -> Result<Vec<AttributeConstraint>, String> {
    if group.attribute_constraints.is_empty() {
        return Err("a group has no attribute constraint".into());
    }
    group.attribute_constraints.iter().map(attribute_constraint).collect()
}

fn attribute_constraint(constraint: &scheduler::AttributeConstraint) -> Result<AttributeConstraint, String> {
    let selector = selector(&constraint.selector)?;
    Ok(AttributeConstraint { selector, predicate: predicate(&constraint.predicate)? })
}

fn selector(selector: &scheduler::attribute_constraint::Selector) -> Result<Selector, String> {
    match (&selector.attribute_name, selector.pseudoattribute_type) {
        (Some(name), None) => Ok(Selector::Attribute(Arc::from(name.as_str()))),
        (None, Some(PseudoattributeType::HOSTNAME)) => Ok(Selector::Hostname),
        (None, Some(PseudoattributeType::REGION)) => Ok(Selector::Region),
        (None, Some(PseudoattributeType::ZONE)) => Ok(Selector::Zone),
        (None, Some(PseudoattributeType::UNKNOWN)) => Err("'pseudoattribute_type' is unknown".into()),
        (None, None) | (Some(_), Some(_)) => {
            Err("exactly one of 'attribute_name' and 'pseudoattribute_type' must be set".into())
        }
    }
}

fn predicate(predicate: &scheduler::attribute_constraint::Predicate) -> Result<Predicate, String> {
    let pattern = |regex: &str| Pattern::new(regex).map_err(|why| format!("regex '{regex}': {why}"));
    let mut found = Vec::new();
    if predicate.exists.is_set() {
        found.push(Predicate::Exists);
    }
    if predicate.not_exists.is_set() {
        found.push(Predicate::NotExists);
    }
    if let Some(text) = predicate.text_equals.as_option() {
        found.push(Predicate::TextEquals(Arc::from(text.value.as_str())));
    }
    if let Some(text) = predicate.text_not_equals.as_option() {
        found.push(Predicate::TextNotEquals(Arc::from(text.value.as_str())));
    }
    if let Some(text) = predicate.text_matches.as_option() {
        found.push(Predicate::TextMatches(pattern(&text.regex)?));
    }
    if let Some(text) = predicate.text_not_matches.as_option() {
        found.push(Predicate::TextNotMatches(pattern(&text.regex)?));
    }
    match found.pop() {
        Some(only) if found.is_empty() => Ok(only),
        Some(_) | None => Err("exactly one predicate must be set".into()),
    }
}
