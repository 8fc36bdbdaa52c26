//! The container farthest above its memory request. Pure arithmetic over samples.

use alloc::collections::BTreeMap;

use tepui_types::ContainerId;

use crate::state::bookkeeping::MemoryUse;

/// The container with the most memory beyond its request. Usage and requests of nested containers are subtracted, so
/// an executor is charged for its tasks only if these have no cgroups of their own. None if all are within their
/// requests.
pub(super) fn farthest(all: &[MemoryUse]) -> Option<&MemoryUse> {
    let mut nested: BTreeMap<&ContainerId, (u64, u64)> = BTreeMap::new();
    for one in all {
        if let Some(parent) = one.id.parent() {
            let (used, requested) = nested.entry(parent).or_default();
            *used = used.saturating_add(one.used_bytes);
            *requested = requested.saturating_add(one.request_bytes);
        }
    }
    let over = |one: &MemoryUse| {
        let (used, requested) = nested.get(&one.id).copied().unwrap_or_default();
        let (used, requested) =
            (one.used_bytes.saturating_sub(used), one.request_bytes.saturating_sub(requested));
        used.saturating_sub(requested)
    };
    let candidates = all.iter().filter(|one| over(one) > 0);
    candidates.max_by(|a, b| over(a).cmp(&over(b)).then_with(|| a.id.cmp(&b.id)))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    /// `name used/request`, nested ones as `parent.name`.
    fn check(samples: &str, expected: &str) {
        let sample = |text: &str| {
            let (name, amounts) = text.split_once(' ').expect("a name");
            let (used, request) = amounts.split_once('/').expect("used/request");
            let mut names = name.split('.');
            let top = ContainerId::root(names.next().expect("a name"));
            MemoryUse {
                id: names.fold(top, |id, name| id.child(name)),
                used_bytes: used.parse().expect("a number"),
                request_bytes: request.parse().expect("a number"),
                limit_bytes: None,
            }
        };
        let all: Vec<MemoryUse> = samples.split(", ").filter(|text| !text.is_empty()).map(sample).collect();
        let chosen = farthest(&all).map(|one| one.id.to_string()).unwrap_or_default();
        assert_eq!(chosen, expected, "{samples}");
    }

    #[test]
    fn container_farthest_above_its_request_is_evicted() {
        for (samples, expected) in [
            ("", ""),
            ("a 10/10, b 5/10", ""),
            ("a 11/10, b 5/10", "a"),
            ("a 30/10, b 31/10", "b"),
            // The largest user is not the farthest over.
            ("large 1000/995, small 20/10", "small"),
            // Without a request, all usage is above it.
            ("none 12/0, a 21/10", "none"),
            ("a 20/10, b 20/10", "b"),
            // The nested one is to blame, not its executor.
            ("e 60/40, e.x 40/16, e.y 10/16", "e.x"),
            // The executor itself is.
            ("e 60/40, e.x 10/16, e.y 10/16", "e"),
            ("e 40/40, e.x 20/16, e.y 8/16", "e.x"),
            ("e 18446744073709551615/0, f 18446744073709551615/1", "e"),
        ] {
            check(samples, expected);
        }
    }
}
