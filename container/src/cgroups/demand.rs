//! Requests and limits of a container, as the controllers need them.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;

const BYTES_PER_MB: f64 = 1024.0 * 1024.0;

/// No container gets less memory than this.
pub(crate) const MEM_BYTES_MIN: u64 = 32 * 1024 * 1024;

/// No machine has so many, and the kernel refuses quotas that are much larger: more than this is no limit.
const CPUS_MAX: f64 = 1_000_000.0;

/// How much more than its request something may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit<T> {
    Finite(T),
    /// Whatever the machine has.
    Infinite,
}

/// Requests and limits of a container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Demand {
    pub cpus: f64,
    /// Some of the cpus may be reclaimed: the container has a lower weight than the others.
    pub revocable_cpus: bool,
    pub cpu_limit: Option<Limit<f64>>,
    /// At least [`MEM_BYTES_MIN`]; less if only a limit was requested: then no memory is protected.
    pub mem_bytes: u64,
    pub mem_limit: Option<Limit<u64>>,
}

/// What the operator chose for all containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// A cpu request is also a limit.
    pub enable_cfs: bool,
    /// The limit holds for memory and swap together.
    pub limit_swap: bool,
    pub revocable_cpu_low_priority: bool,
}

impl Demand {
    pub fn new(resources: &[pb::Resource], limits: &BTreeMap<String, f64>) -> Demand {
        let named = |name: &'static str| resources.iter().filter(move |one| one.name == name);
        let sum = |name| named(name).map(|one| one.scalar.value).sum::<f64>();
        Demand {
            cpus: sum("cpus"),
            revocable_cpus: named("cpus").any(|one| one.revocable.is_set()),
            cpu_limit: limits.get("cpus").map(|cpus| match *cpus > CPUS_MAX {
                true => Limit::Infinite,
                false => Limit::Finite(*cpus),
            }),
            mem_bytes: match sum("mem") == 0.0 && limits.contains_key("mem") {
                true => 0,
                false => bytes(sum("mem")),
            },
            mem_limit: limits.get("mem").map(|mem| match *mem == f64::INFINITY {
                true => Limit::Infinite,
                false => Limit::Finite(bytes(*mem)),
            }),
        }
    }

    /// The upper bound on memory: the limit, else the request.
    pub fn mem_bound(&self) -> Limit<u64> {
        self.mem_limit.unwrap_or(Limit::Finite(self.mem_bytes))
    }

    /// Whether the container may exceed its memory request.
    pub fn bursts(&self) -> bool {
        match self.mem_bound() {
            Limit::Infinite => true,
            Limit::Finite(bound) => bound > self.mem_bytes,
        }
    }
}

/// Whole bytes of an amount in megabytes, raised to the least.
fn bytes(mb: f64) -> u64 {
    // A conversion that saturates; NaN, which the master refuses, becomes zero.
    ((mb * BYTES_PER_MB) as u64).max(MEM_BYTES_MIN)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// For tests of the controllers: `inf` is a limit too.
    pub fn demand(cpus: f64, cpu_limit: Option<f64>, mem: f64, mem_limit: Option<f64>) -> Demand {
        let limits = [("cpus", cpu_limit), ("mem", mem_limit)];
        let limits = limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?)));
        Demand::new(&[scalar("cpus", cpus), scalar("mem", mem)], &limits.collect())
    }

    pub const POLICY: Policy =
        Policy { enable_cfs: false, limit_swap: false, revocable_cpu_low_priority: true };

    fn scalar(name: &str, value: f64) -> pb::Resource {
        pb::Resource {
            name: name.to_owned(),
            scalar: pb::value::Scalar { value, ..Default::default() }.into(),
            ..Default::default()
        }
    }

    #[test]
    fn resources_are_summed_and_memory_has_a_minimum() {
        let revocable =
            pb::Resource { revocable: pb::resource::RevocableInfo::default().into(), ..scalar("cpus", 0.5) };
        let all = [scalar("cpus", 1.0), scalar("mem", 1.0), revocable, scalar("disk", 7.0)];
        let demand = Demand::new(&all, &BTreeMap::new());
        assert_eq!((demand.cpus, demand.revocable_cpus, demand.mem_bytes), (1.5, true, MEM_BYTES_MIN));
        assert!(!demand.bursts());
    }

    #[test]
    fn no_request_means_minimum_shares() {
        let demand = demand(0.0, Some(f64::INFINITY), 0.0, Some(f64::INFINITY));
        assert_eq!((demand.cpus, demand.mem_bytes, demand.bursts()), (0.0, 0, true));
        assert_eq!(Demand::new(&[], &BTreeMap::new()).mem_bytes, MEM_BYTES_MIN, "but not without a limit");
    }

    #[test]
    fn huge_limits_saturate() {
        let huge = demand(1.0, Some(1e308), 64.0, Some(1e308));
        assert_eq!((huge.cpu_limit, huge.mem_limit), (Some(Limit::Infinite), Some(Limit::Finite(u64::MAX))));
    }

    #[test]
    fn burst_requires_a_higher_limit() {
        for (request, limit, bursts) in [
            (64.0, None, false),
            (64.0, Some(64.0), false),
            (64.0, Some(65.0), true),
            (1.0, Some(20.0), false),
            (64.0, Some(f64::INFINITY), true),
        ] {
            assert_eq!(demand(1.0, None, request, limit).bursts(), bursts, "{request} {limit:?}");
        }
    }
}
