//! The kinds of revocable resources that a launch uses, where its scheduler leaves them out.
//!
//! A scheduler written for v1 has one kind, `revocable: {}`, and may use all revocable resources of its offers. Kinds
//! are assigned once, right before the launch is validated, from the resources left by earlier tasks of the same
//! ACCEPT: first those the agent offers without a kind, then usage slack, then allocation slack. One entry may become
//! several.

use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::LaunchGroup;
use tepui_proto::mesos::v1::resource::revocable_info::Type;
use tepui_resources::{Format, Resource, Resources, Revocable};
use tepui_types::ExecutorId;

use crate::master::Master;
use crate::values::accepted_offers::AcceptedOffers;

/// In the order in which they are used.
const KINDS: [Revocable; 3] = [Revocable::Plain, Revocable::UsageSlack, Revocable::AllocationSlack];

pub(crate) fn settle_task(master: &Master, accepted: &AcceptedOffers, task: &mut pb::TaskInfo) {
    let own = task.executor.as_option().map_or(&[][..], |executor| &executor.resources);
    if !task.resources.iter().chain(own).any(lacks_kind) {
        return;
    }
    let running = task.executor.as_option().and_then(|executor| running(master, accepted, executor));
    let taken = if running.is_some() { &[][..] } else { own };
    let mut left = &accepted.pool - &with_kinds(task.resources.iter().chain(taken));
    if let Some(executor) = task.executor.as_option_mut() {
        settle_executor(executor, running, &mut left);
    }
    settle(&mut task.resources, &mut left);
}

pub(crate) fn settle_group(master: &Master, accepted: &AcceptedOffers, group: &mut LaunchGroup) {
    let tasks = &mut group.task_group.get_or_insert_default().tasks;
    let executor = group.executor.get_or_insert_default();
    let of_tasks = || tasks.iter().flat_map(|task| &task.resources);
    if !of_tasks().chain(&executor.resources).any(lacks_kind) {
        return;
    }
    let running = running(master, accepted, executor);
    let taken = if running.is_some() { &[][..] } else { &executor.resources };
    let mut left = &accepted.pool - &with_kinds(of_tasks().chain(taken));
    let before = executor.clone();
    settle_executor(executor, running, &mut left);
    for task in tasks {
        settle(&mut task.resources, &mut left);
        // Every task of a group names the group's executor.
        if *task.executor == before {
            task.executor = executor.clone().into();
        }
    }
}

/// The executor of this id that the agent has already.
fn running<'m>(
    master: &'m Master,
    accepted: &AcceptedOffers,
    executor: &pb::ExecutorInfo,
) -> Option<&'m pb::ExecutorInfo> {
    let key = (accepted.framework_id.clone(), ExecutorId::from(&*executor.executor_id));
    Some(&master.agent(&accepted.agent_id)?.executors.get(&key)?.info)
}

/// An executor that runs has the kinds that it was launched with, and takes nothing from the offers.
fn settle_executor(
    executor: &mut pb::ExecutorInfo,
    running: Option<&pb::ExecutorInfo>,
    left: &mut Resources,
) {
    match running {
        None => settle(&mut executor.resources, left),
        Some(running) if without_kinds(&executor.resources) == without_kinds(&running.resources) => {
            executor.resources.clone_from(&running.resources);
        }
        Some(_) => (), // Not the running executor: a validation error.
    }
}

/// What names its kind: it can be nothing else, so it is set aside first.
fn with_kinds<'a>(resources: impl Iterator<Item = &'a pb::Resource>) -> Resources {
    let named = resources.filter(|one| one.revocable.is_set() && !lacks_kind(one));
    named.filter_map(|one| Resource::from_proto(one).ok()).collect()
}

/// Takes what lacks a kind out of what is left, as far as it is there.
fn settle(list: &mut Vec<pb::Resource>, left: &mut Resources) {
    for one in core::mem::take(list) {
        match Resource::from_proto(&one) {
            Ok(parsed) if lacks_kind(&one) => settle_one(&one, parsed.into(), left, list),
            Ok(_) | Err(_) => list.push(one), // Validation names what is wrong with it.
        }
    }
}

fn settle_one(one: &pb::Resource, mut wanted: Resources, left: &mut Resources, list: &mut Vec<pb::Resource>) {
    let mut last = Revocable::Plain;
    for kind in KINDS {
        let taken = left.intersect(&wanted.clone().flatten(kind));
        if !taken.is_empty() {
            *left -= &taken;
            wanted -= taken.clone().flatten(Revocable::Plain);
            list.extend(taken.iter().map(|part| part_of(one, part)));
            last = kind;
        }
    }
    // More than available: a validation error for the kind that ran out.
    let missing = wanted.flatten(last);
    list.extend(missing.iter().map(|part| part_of(one, part)));
}

/// The same resource with the value and the kind of a part of it.
fn part_of(whole: &pb::Resource, part: &Resource) -> pb::Resource {
    let pb::Resource { scalar, ranges, set, revocable, .. } = part.to_proto(Format::Post);
    pb::Resource { scalar, ranges, set, revocable, ..whole.clone() }
}

fn lacks_kind(resource: &pb::Resource) -> bool {
    let info = resource.revocable.as_option();
    info.is_some_and(|info| matches!(info.r#type, None | Some(Type::UNKNOWN)))
}

/// As a scheduler of v1 sees them.
fn without_kinds(list: &[pb::Resource]) -> Option<Resources> {
    let plain = |one: Resource| match one.is_revocable() {
        true => one.with_revocable(Revocable::Plain),
        false => one,
    };
    Some(Resources::from_proto(list).ok()?.map(plain))
}
