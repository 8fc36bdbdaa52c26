//! Resources of tasks and executors: each list by itself, and several that will be used together.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::{Resources, validate};

/// The rules for one task's or executor's list. `whose` begins the sentence.
pub(super) fn list(whose: &str, resources: &[pb::Resource]) -> Result<(), String> {
    validate::extended(resources).map_err(|why| format!("{whose} uses invalid resources: {why}"))?;
    validate::unique_persistence_ids(resources)
        .map_err(|why| format!("{whose} uses duplicate persistence ID: {why}"))?;
    validate::single_allocation_role(resources)
        .map_err(|why| format!("{whose} uses invalid resources: {why}"))?;
    validate::no_revocable_mix(resources)
        .map_err(|why| format!("{whose} mixes revocable and non-revocable resources: {why}"))
}

/// A list that passed [`list`].
pub(super) fn parse(resources: &[pb::Resource]) -> Result<Resources, String> {
    Resources::from_proto(resources)
        .map_err(|why| format!("Task and its executor use invalid resources: {why}"))
}

/// The rules for several lists that will be used together; their sum, each shared resource once.
pub(super) fn together<'a>(lists: impl IntoIterator<Item = &'a [pb::Resource]>) -> Result<Resources, String> {
    let mut all: Vec<pb::Resource> = Vec::new();
    let mut sum = Resources::new();
    let invalid = |why| format!("Task and its executor use invalid resources: {why}");
    for list in lists {
        let own = Resources::from_proto(list).map_err(invalid)?;
        validate::disjoint(&sum, &own).map_err(|why| why.to_string())?;
        sum += &own;
        all.extend_from_slice(list);
    }
    validate::extended(&all).map_err(invalid)?;
    // A shared volume may be named by several.
    validate::unique_persistence_ids(all.iter().filter(|resource| !resource.shared.is_set()))
        .map_err(|why| format!("Task and its executor use duplicate persistence ID: {why}"))?;
    validate::no_revocable_mix(&all)
        .map_err(|why| format!("Task and its executor mix revocable and non-revocable resources: {why}"))?;
    Ok(sum.single_copies())
}
