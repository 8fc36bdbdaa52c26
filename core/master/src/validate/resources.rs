//! Resources of tasks and executors: each list by itself, and several that will be used together.

use alloc::format;
use alloc::string::{String, ToString};

use tepui_proto::mesos::v1 as pb;
use tepui_resources::{ResourceError, Resources, validate};

/// The rules for the resources of one task or executor; returns them parsed. `whose` begins the message.
pub(super) fn parse(whose: &str, resources: &[pb::Resource]) -> Result<Resources, String> {
    let invalid = |why: ResourceError| format!("{whose} uses invalid resources: {why}");
    validate::extended(resources).map_err(invalid)?;
    validate::unique_persistence_ids(resources)
        .map_err(|why| format!("{whose} uses duplicate persistence ID: {why}"))?;
    validate::single_allocation_role(resources).map_err(invalid)?;
    validate::no_revocable_mix(resources)
        .map_err(|why| format!("{whose} mixes revocable and non-revocable resources: {why}"))?;
    Resources::from_proto(resources).map_err(invalid)
}

/// A list that passed [`parse`], with its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed<'a> {
    pub(super) list: &'a [pb::Resource],
    pub(super) resources: &'a Resources,
}

/// The rules for several lists that will be used together; their sum, each shared resource once.
pub(super) fn together(lists: &[Parsed<'_>]) -> Result<Resources, String> {
    let mut sum = Resources::new();
    for Parsed { resources, .. } in lists {
        validate::disjoint(&sum, resources).map_err(|why| why.to_string())?;
        sum += *resources;
    }
    let all = || lists.iter().flat_map(|parsed| parsed.list);
    // A shared volume may be named by several.
    validate::unique_persistence_ids(all().filter(|resource| !resource.shared.is_set()))
        .map_err(|why| format!("Task and its executor use duplicate persistence ID: {why}"))?;
    validate::no_revocable_mix(all())
        .map_err(|why| format!("Task and its executor mix revocable and non-revocable resources: {why}"))?;
    Ok(sum.single_copies())
}
