//! Binary input: rejections with their paths, and preserved fields.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use buffa::DecodeError;

use super::{WIRE_DEPTH_MAX, WireError, check_size, decode, encode, size};
use crate::mesos::v1::{
    AgentID, ContainerID, ContainerStatus, Filters, FrameworkID, Label, Labels, Offer, OfferID, Resource,
    TaskID, TaskInfo, TaskState, TaskStatus, offer, scheduler, value,
};
use crate::{MessageField, Wire};

const LIMIT: usize = 1 << 20;

fn verdict<M: Wire>(bytes: &[u8]) -> String {
    match decode::<M>(bytes, LIMIT) {
        Ok(message) => String::from_utf8(crate::json::to_vec(&message)).expect("JSON is text"),
        Err(error) => format!("error: {error}"),
    }
}

/// A field of wire type 2.
fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).expect("short")], bytes].concat()
}

#[test]
fn oversized_message_names_its_largest_field() {
    let label = |value: &str| Label { key: "k".into(), value: Some(value.into()), ..Default::default() };
    let task = TaskInfo {
        name: "a".repeat(50),
        labels: Labels { labels: vec![label("x"), label(&"y".repeat(100))], ..Default::default() }.into(),
        ..Default::default()
    };
    let bytes = encode(&task).len();
    assert_eq!((size(&task), check_size(&task, bytes)), (bytes, Ok(())));
    let why = check_size(&task, bytes - 1).expect_err("one byte too much");
    let expected =
        format!("takes {bytes} bytes, more than the limit of {}; its field 'labels' takes 115", bytes - 1);
    assert_eq!(format!("{why}"), expected);
}

#[test]
fn missing_fields_are_named_with_their_path() {
    assert_eq!(verdict::<Label>(b""), "error: Missing required fields: key");
    let kill = scheduler::Call { kill: scheduler::call::Kill::default().into(), ..Default::default() };
    assert_eq!(verdict::<scheduler::Call>(&encode(&kill)), "error: Missing required fields: kill.task_id");

    let launch = offer::operation::Launch {
        task_infos: vec![
            TaskInfo {
                name: "whole".into(),
                task_id: TaskID { value: "t".into(), ..Default::default() }.into(),
                agent_id: AgentID { value: "a".into(), ..Default::default() }.into(),
                ..Default::default()
            },
            TaskInfo { name: "part".into(), ..Default::default() },
        ],
        ..Default::default()
    };
    let call = scheduler::Call {
        accept: scheduler::call::Accept {
            operations: vec![offer::Operation { launch: launch.into(), ..Default::default() }],
            ..Default::default()
        }
        .into(),
        ..Default::default()
    };
    assert_eq!(
        verdict::<scheduler::Call>(&encode(&call)),
        "error: Missing required fields: accept.operations[0].launch.task_infos[1].task_id, \
         accept.operations[0].launch.task_infos[1].agent_id"
    );
}

#[test]
fn merged_message_parts_are_validated_together() {
    // `task_id` once without and once with its value: together it is complete.
    let split = [part(1, b""), part(1, &part(1, b"t")), vec![2 << 3, 2]].concat();
    assert_eq!(verdict::<TaskStatus>(&split), r#"{"task_id":{"value":"t"},"state":"TASK_FINISHED"}"#);
    let never = [part(1, b""), part(1, b""), vec![2 << 3, 2]].concat();
    assert_eq!(verdict::<TaskStatus>(&never), "error: Missing required fields: task_id.value");
}

#[test]
fn deep_messages_in_parts_are_decoded_in_linear_time() {
    let mut id = part(1, b"");
    for _ in 0..25 {
        id = [part(2, b""), part(2, &id)].concat();
    }
    assert!(verdict::<ContainerID>(&id).starts_with("error: Missing required fields: value, parent.value, "));
}

#[test]
fn an_unknown_value_of_a_required_enum_is_a_missing_field() {
    let status =
        |state: u8, reason: u8| [part(1, &part(1, b"t")), vec![2 << 3, state, 10 << 3, reason]].concat();
    assert_eq!(verdict::<TaskStatus>(&status(99, 0)), "error: Missing required fields: state");
    let newer = status(1, 99);
    assert_eq!(verdict::<TaskStatus>(&newer), r#"{"task_id":{"value":"t"},"state":"TASK_RUNNING"}"#);
    let kept = decode::<TaskStatus>(&newer, LIMIT).expect("the reason is optional");
    assert_eq!(kept.state, TaskState::TASK_RUNNING);
    assert_eq!(encode(&kept).len(), newer.len(), "the unknown reason goes on");
}

#[test]
fn nan_is_rejected_with_its_path() {
    let filters = |seconds| encode(&Filters { refuse_seconds: Some(seconds), ..Default::default() });
    assert_eq!(verdict::<Filters>(&filters(f64::NAN)), "error: refuse_seconds: NaN is not a number");
    assert_eq!(verdict::<Filters>(&filters(f64::INFINITY)), r#"{"refuse_seconds":"Infinity"}"#);

    let cpus = |value| Resource {
        name: "cpus".into(),
        scalar: value::Scalar { value, ..Default::default() }.into(),
        ..Default::default()
    };
    let offer = Offer {
        id: OfferID { value: "o".into(), ..Default::default() }.into(),
        framework_id: FrameworkID { value: "f".into(), ..Default::default() }.into(),
        agent_id: AgentID { value: "a".into(), ..Default::default() }.into(),
        hostname: "h".into(),
        resources: vec![cpus(1.0), cpus(f64::NAN)],
        ..Default::default()
    };
    assert_eq!(verdict::<Offer>(&encode(&offer)), "error: resources[1].scalar.value: NaN is not a number");
}

#[test]
fn malformed_bytes_are_rejected() {
    let group = |levels: usize| [vec![15 << 3 | 3; levels], vec![15 << 3 | 4; levels]].concat();
    let with_key = |rest: &[u8]| [&part(1, b"k"), rest].concat();
    for (bytes, expected) in [
        (vec![0x0a], "error: truncated"),
        (vec![0x0a, 5, b'k'], "error: truncated"),
        (vec![0xff; 11], "error: a varint is longer than ten bytes"),
        (vec![0x02, 0], "error: a field number is out of range"),
        (vec![0x0f], "error: an unknown wire type"),
        (vec![15 << 3 | 4], "error: an end of group without its start"),
        (vec![15 << 3 | 3, 14 << 3 | 4], "error: an end of group without its start"),
        (vec![15 << 3 | 3], "error: truncated"),
        (with_key(&group(101)), "error: groups are nested too deeply"),
        (vec![1 << 3, 1], "error: Missing required fields: key"),
        (with_key(&[7 << 3 | 5, 1]), "error: truncated"),
    ] {
        assert_eq!(verdict::<Label>(&bytes), expected, "for {bytes:?}");
    }
    assert_eq!(verdict::<Labels>(&part(1, &[0x0a, 9])), "error: labels[0]: truncated");
}

#[test]
fn depth_and_size_are_limited() {
    let nested = |levels: u32| {
        let mut id = ContainerID { value: "c".into(), ..Default::default() };
        for _ in 0..levels {
            id = ContainerID { value: "c".into(), parent: id.into(), ..Default::default() };
        }
        encode(&id)
    };
    assert!(decode::<ContainerID>(&nested(WIRE_DEPTH_MAX - 1), LIMIT).is_ok());
    let error = verdict::<ContainerID>(&nested(WIRE_DEPTH_MAX + 1));
    assert!(error.ends_with("parent.parent: nested too deeply"), "{error}");

    let label = Label { key: "k".into(), ..Default::default() };
    let bytes = encode(&label);
    assert_eq!(decode::<Label>(&bytes, bytes.len()), Ok(label));
    let error = decode::<Label>(&bytes, bytes.len() - 1).expect_err("one byte too many");
    assert_eq!(error, WireError::TooLarge { bytes: 3, limit: 2 });
}

#[test]
fn small_body_cannot_allocate_a_large_heap() {
    let empty_networks = part(1, b"").repeat(LIMIT / 2);
    let error = decode::<ContainerStatus>(&empty_networks, LIMIT).expect_err("two bytes for each of them");
    assert_eq!(error, WireError::Decode(DecodeError::ElementMemoryLimitExceeded));
}

#[test]
fn unknown_fields_are_preserved() {
    let mut bytes = encode(&Label { key: "k".into(), ..Default::default() });
    bytes.extend([15 << 3, 7]);
    bytes.extend(part(14, b"later"));
    bytes.extend([13 << 3 | 3, 1 << 3, 1, 13 << 3 | 4]);
    let label = decode::<Label>(&bytes, LIMIT).expect("unknown fields are no error");
    assert_eq!(encode(&label), bytes);
    let outer = Labels { labels: vec![label], ..Default::default() };
    let copy = decode::<Labels>(&encode(&outer), LIMIT).expect("and nested ones neither");
    assert_eq!(copy, outer);
}

#[test]
fn unset_message_is_one_pointer() {
    let unset: MessageField<ContainerID> = MessageField::none();
    assert_eq!(size_of_val(&unset), size_of::<usize>());
    assert_eq!(size_of_val(&TaskInfo::default().executor), size_of::<usize>());
}
