//! Filters: each keeps the nodes on which a container may be placed, and says what it looked for.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::expression::Expression;
use crate::node::Node;
use crate::occupant::{HostBinding, Image};
use crate::res_type::RES_TYPE;
use crate::spec::ContainerSpec;

/// Label of an engine with the most containers that it takes.
const SLOTS_LABEL: &str = "containerslots";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Health,
    Port,
    ContainerSlots,
    Dependency,
    Affinity,
    Constraint,
    Whitelist,
}

/// Whether expressions with a tilde count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soft {
    Enforced,
    Ignored,
}

impl Filter {
    /// In the order in which they are applied.
    pub const ALL: [Filter; 7] = [
        Filter::Health,
        Filter::Port,
        Filter::ContainerSlots,
        Filter::Dependency,
        Filter::Affinity,
        Filter::Constraint,
        Filter::Whitelist,
    ];

    /// By its name on the command line.
    pub fn named(name: &str) -> Option<Filter> {
        Filter::ALL.into_iter().find(|filter| filter.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Filter::Health => "health",
            Filter::Port => "port",
            Filter::ContainerSlots => "containerslots",
            Filter::Dependency => "dependency",
            Filter::Affinity => "affinity",
            Filter::Constraint => "constraint",
            Filter::Whitelist => "whitelist",
        }
    }

    pub fn keeps(self, spec: &ContainerSpec, node: &Node<'_>, soft: Soft) -> bool {
        let all = |expressions: &[Expression], holds: fn(&Expression, &Node<'_>) -> bool| {
            let counts = |it: &&Expression| soft == Soft::Enforced || !it.soft;
            expressions.iter().filter(counts).all(|expression| holds(expression, node))
        };
        match self {
            Filter::Health => node.health > 0,
            Filter::Port => has_free_ports(spec, node),
            Filter::ContainerSlots => has_free_slot(node),
            Filter::Dependency => spec.dependencies().iter().all(|(_, name)| node.has_container(name)),
            Filter::Affinity => all(&spec.affinities, affinity_holds),
            Filter::Constraint => all(&spec.constraints, constraint_holds),
            Filter::Whitelist => all(&spec.whitelists, is_whitelisted),
        }
    }

    /// What a container asked of this filter, as it is listed if no node is left.
    pub fn conditions(self, spec: &ContainerSpec) -> Vec<String> {
        let with_softness = |expressions: &[Expression]| -> Vec<String> {
            expressions.iter().map(|it| format!("{it} (soft={})", it.soft)).collect()
        };
        match self {
            Filter::Health => Vec::new(),
            Filter::Port if spec.is_host_network() => {
                spec.exposed_ports.iter().map(|port| format!("port {port} (Host mode)")).collect()
            }
            Filter::Port => {
                let port = |port: Option<u16>| port.map(|port| port.to_string()).unwrap_or_default();
                spec.bindings.iter().map(|it| format!("port {} (Bridge mode)", port(it.host_port))).collect()
            }
            Filter::ContainerSlots => Vec::from([String::from("available container slots")]),
            Filter::Dependency => spec.dependencies().into_iter().map(|(option, _)| option).collect(),
            Filter::Affinity => with_softness(&spec.affinities),
            // The type of resources is enforced by the choice of nodes; the user's own words are shown.
            Filter::Constraint => spec
                .constraints
                .iter()
                .map(|it| if it.key == RES_TYPE { it.written() } else { it.to_string() })
                .collect(),
            Filter::Whitelist => with_softness(&spec.whitelists),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn has_free_ports(spec: &ContainerSpec, node: &Node<'_>) -> bool {
    if spec.is_host_network() {
        let taken = |port: &String| node.occupants.iter().any(|it| it.host_mode_ports.contains(port));
        return !spec.exposed_ports.iter().any(taken);
    }
    spec.bindings.iter().all(|wanted| {
        let Some(port) = wanted.host_port else { return true };
        let wanted = HostBinding { ip: wanted.host_ip.clone(), port: port.to_string() };
        !node.occupants.iter().flat_map(|it| &it.bindings).any(|taken| taken.collides(&wanted))
    })
}

/// A label that is no number limits nothing.
fn has_free_slot(node: &Node<'_>) -> bool {
    match node.label(SLOTS_LABEL).parse::<i64>() {
        Ok(slots) => (node.occupancy as i64) < slots,
        Err(_) => true,
    }
}

fn affinity_holds(affinity: &Expression, node: &Node<'_>) -> bool {
    let occupants = node.occupants.iter();
    match affinity.key.as_str() {
        "container" => affinity.holds(occupants.flat_map(|it| [it.id.as_str(), it.name.as_str()])),
        "image" => affinity.holds(node.images.iter().flat_map(Image::candidates)),
        label => {
            affinity.holds(occupants.map(|it| it.labels.get(label).map(String::as_str).unwrap_or_default()))
        }
    }
}

fn constraint_holds(constraint: &Expression, node: &Node<'_>) -> bool {
    match constraint.key.as_str() {
        "node" => constraint.holds([node.id, node.name]),
        RES_TYPE => true,
        label => constraint.holds([node.label(label)]),
    }
}

/// Names separated by bars; key and operator do not matter.
fn is_whitelisted(whitelist: &Expression, node: &Node<'_>) -> bool {
    whitelist.value.split('|').any(|name| name == node.name)
}

#[cfg(test)]
mod tests;
