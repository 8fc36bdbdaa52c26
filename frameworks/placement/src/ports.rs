//! Host ports: exact ones as requested, any others from the lowest that are offered.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tepui_resources::{Name, Range, Ranges, Resource, Resources, Value};

use crate::{Misfit, Port};

/// The numbers for each port of a request, in its order.
pub(crate) fn choose(requested: &[Port], offered: &Ranges) -> Result<Vec<u64>, Misfit> {
    let mut taken = BTreeSet::new();
    for port in requested {
        if let Port::Exactly(number) = port {
            // Two bindings of one port (another address, another protocol) share the resource.
            taken.insert(*number);
            if !offered.has(*number) {
                return Err(Misfit::Port(*number));
            }
        }
    }
    let short = || Misfit::Ports { requested: requested.len(), have: offered.count() };
    let mut chosen = Vec::with_capacity(requested.len());
    // A port of certain ranges has less to choose from than one of any: it goes first.
    let mut within = Vec::new();
    for port in requested {
        if let Port::Within(ranges) = port {
            let free = offered.intersection(ranges).values().find(|number| !taken.contains(number));
            let number = free.ok_or_else(short)?;
            taken.insert(number);
            within.push(number);
        }
    }
    let reserved = taken.clone();
    let mut free = offered.values().filter(|number| !reserved.contains(number));
    let mut within = within.into_iter();
    for port in requested {
        chosen.push(match port {
            Port::Exactly(number) => *number,
            Port::Any => free.next().ok_or_else(short)?,
            Port::Within(_) => within.next().ok_or_else(short)?,
        });
    }
    Ok(chosen)
}

/// The parts of the offered port resources that hold these numbers, reserved ones first.
pub(crate) fn take(chosen: &[u64], resources: &Resources) -> Resources {
    let mut missing: Ranges = chosen.iter().map(|port| Range { begin: *port, end: *port }).collect();
    let mut sources: Vec<&Resource> = resources.iter().filter(|it| *it.name() == Name::Ports).collect();
    sources.sort_by_key(|resource| (resource.is_revocable(), !resource.is_reserved()));
    let mut taken = Resources::new();
    for source in sources {
        let Value::Ranges(ranges) = source.value() else { continue };
        let part = ranges.intersection(&missing);
        if !part.is_empty() {
            missing = missing.difference(&part);
            taken.insert(source.clone().with_value(Value::Ranges(part)));
        }
    }
    taken
}
