//! The words of a script: options, resources, states.

use alloc::format;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::{Format, parse};

/// `cpus:1`, `cpus(web):1`, `disk(web)@v1:10`: reservations in brackets, `~` allocation slack, `^` usage slack, `?`
/// revocable without a kind, `@` a persistent volume.
pub(super) fn list(words: &[&str]) -> Vec<pb::Resource> {
    let resources = words.iter().copied().filter(|word| is_resource(word));
    resources.map(resource).collect()
}

pub(super) fn resource(word: &str) -> pb::Resource {
    let (what, value) = word.split_once(':').expect("name:value");
    let (what, volume) = what.split_once('@').map_or((what, None), |(what, volume)| (what, Some(volume)));
    use pb::resource::revocable_info::Type;
    let kinds = [('~', Some(Type::ALLOCATION_SLACK)), ('^', Some(Type::USAGE_SLACK)), ('?', None)];
    let revocable = kinds.into_iter().find_map(|(mark, kind)| Some((what.strip_suffix(mark)?, kind)));
    let (what, kind) = revocable.map_or((what, None), |(what, kind)| (what, Some(kind)));
    let (name, roles) =
        what.split_once('(').map_or((what, ""), |(name, roles)| (name, roles.trim_end_matches(')')));
    let plain = parse::resources(&format!("{name}:{value}"), "*").expect("resources");
    let mut resource = plain[0].to_proto(Format::Post);
    for role in roles.split(',').filter(|role| !role.is_empty()) {
        resource.reservations.push(pb::resource::ReservationInfo {
            r#type: Some(pb::resource::reservation_info::Type::DYNAMIC),
            role: Some(role.into()),
            ..Default::default()
        });
    }
    if let Some(kind) = kind {
        resource.revocable = pb::resource::RevocableInfo { r#type: kind, ..Default::default() }.into();
    }
    if let Some(volume) = volume {
        if volume.starts_with("shared") {
            resource.shared = pb::resource::SharedInfo::default().into();
        }
        let persistence = pb::resource::disk_info::Persistence { id: volume.into(), ..Default::default() };
        let volume =
            pb::Volume { container_path: "data".into(), mode: pb::volume::Mode::RW, ..Default::default() };
        resource.disk = pb::resource::DiskInfo {
            persistence: persistence.into(),
            volume: volume.into(),
            ..Default::default()
        }
        .into();
    }
    resource
}

pub(super) fn is_resource(word: &str) -> bool {
    ["cpus", "mem", "disk", "ports", "gpus", "ephemeral_ports"].iter().any(|name| {
        word.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '(', '@', '~', '^', '?']))
    })
}

pub(super) fn options<'a>(words: &'a [&'a str], key: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    words.iter().filter_map(move |word| word.strip_prefix(key)?.strip_prefix(':'))
}

pub(super) fn option<'a>(words: &'a [&'a str], key: &'a str) -> Option<&'a str> {
    options(words, key).next()
}

pub(super) fn offer_ids(words: &[&str]) -> Vec<pb::OfferID> {
    let ids = words.iter().filter_map(|word| word.strip_prefix('#'));
    let whole = |id: &str| if id.contains('O') { id.into() } else { format!("m-O{id}") };
    ids.map(|id| pb::OfferID { value: whole(id), ..Default::default() }).collect()
}

pub(super) fn filters(words: &[&str]) -> Option<pb::Filters> {
    let seconds = option(words, "refuse")?.parse().expect("seconds");
    Some(pb::Filters { refuse_seconds: Some(seconds), ..Default::default() })
}

pub(super) fn task_state(text: &str) -> pb::TaskState {
    use pb::TaskState as S;
    match text {
        "STARTING" => S::TASK_STARTING,
        "RUNNING" => S::TASK_RUNNING,
        "KILLING" => S::TASK_KILLING,
        "FINISHED" => S::TASK_FINISHED,
        "FAILED" => S::TASK_FAILED,
        "KILLED" => S::TASK_KILLED,
        "DROPPED" => S::TASK_DROPPED,
        "LOST" => S::TASK_LOST,
        "GONE" => S::TASK_GONE,
        _ => panic!("what state is {text}?"),
    }
}

pub(super) fn operation_state(text: &str) -> pb::OperationState {
    match text {
        "FINISHED" => pb::OperationState::OPERATION_FINISHED,
        "DROPPED" => pb::OperationState::OPERATION_DROPPED,
        "FAILED" => pb::OperationState::OPERATION_FAILED,
        _ => panic!("what state is {text}?"),
    }
}
