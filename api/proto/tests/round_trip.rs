//! Whatever a message holds, it comes back the same: from its binary form and from its JSON form.
//!
//! Messages are made by another implementation of protobuf that knows only the descriptor set, from a tape of bytes, so that proptest can
//! shrink a failure: where the tape is empty, fields are left out.

use proptest::prelude::*;
use protox::prost::Message as _;
use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use tepui_proto::mesos::v1::{Offer, TaskInfo, TaskStatus, agent, executor, master, scheduler};
use tepui_proto::{Wire, json, wire};

const LIMIT: usize = 16 << 20;
/// Optional messages further down are left out.
const NESTING_MAX: usize = 5;

struct Tape<'a> {
    bytes: &'a [u8],
}

impl Tape<'_> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|_| self.byte()))
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()].clone()
    }
}

fn message(tape: &mut Tape<'_>, shape: &MessageDescriptor, depth: usize) -> DynamicMessage {
    let mut made = DynamicMessage::new(shape.clone());
    for field in shape.fields() {
        if let Some(value) = field_value(tape, &field, depth) {
            made.set_field(&field, value);
        }
    }
    made
}

fn field_value(tape: &mut Tape<'_>, field: &FieldDescriptor, depth: usize) -> Option<Value> {
    let too_deep = depth >= NESTING_MAX && matches!(field.kind(), Kind::Message(_));
    let present = tape.byte() % 3 == 1 && !too_deep;
    let count = 1 + usize::from(tape.byte() % 2);
    if field.is_map() {
        let entry = field.kind().as_message()?.clone();
        let value = entry.map_entry_value_field().kind();
        let entries =
            (0..count).map(|place| (MapKey::String(format!("k\"{place}")), one(tape, &value, depth + 1)));
        return present.then(|| Value::Map(entries.collect()));
    }
    if field.is_list() {
        return present
            .then(|| Value::List((0..count).map(|_| one(tape, &field.kind(), depth + 1)).collect()));
    }
    // JSON writes the default of an unset field, so that it comes back set: these are set from the start.
    let proto = field.field_descriptor_proto();
    let deprecated = proto.options.as_ref().is_some_and(|options| options.deprecated());
    let has_default = proto.default_value.is_some() && !deprecated;
    (present || field.is_required() || has_default).then(|| one(tape, &field.kind(), depth + 1))
}

fn one(tape: &mut Tape<'_>, kind: &Kind, depth: usize) -> Value {
    match kind {
        Kind::Double => Value::F64(double(tape)),
        Kind::Bool => Value::Bool(tape.byte() % 2 == 1),
        Kind::Int32 => Value::I32(tape.word() as i32),
        Kind::Int64 => Value::I64(tape.word() as i64),
        Kind::Uint32 => Value::U32(tape.word() as u32),
        Kind::Uint64 => Value::U64(tape.word()),
        Kind::String => Value::String(string(tape)),
        Kind::Bytes => Value::Bytes((0..tape.byte() % 6).map(|_| tape.byte()).collect::<Vec<u8>>().into()),
        Kind::Enum(kind) => {
            let numbers: Vec<i32> = kind.values().map(|value| value.number()).collect();
            Value::EnumNumber(tape.one_of(&numbers))
        }
        Kind::Message(shape) => Value::Message(message(tape, shape, depth)),
        other => unreachable!("v1 has no {other:?}"),
    }
}

fn double(tape: &mut Tape<'_>) -> f64 {
    let any = f64::from_bits(tape.word());
    let any = if any.is_nan() { 0.1 } else { any };
    tape.one_of(&[
        any,
        0.0,
        -0.0,
        1.0,
        1e15,
        1e16,
        1e-9,
        0.1,
        1e300,
        f64::MIN_POSITIVE,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ])
}

fn string(tape: &mut Tape<'_>) -> String {
    let pieces = ["plain", "\"", "\\", "\n", "\u{1}", "é", "😀", "/", "{}", ""];
    (0..tape.byte() % 5).map(|_| tape.one_of(&pieces)).collect()
}

fn check<M: Wire>(pool: &DescriptorPool, name: &str, tape: &[u8]) {
    let shape = pool.get_message_by_name(name).expect("a message of v1");
    let made = message(&mut Tape { bytes: tape }, &shape, 0);

    let ours: M = wire::decode(&made.encode_to_vec(), LIMIT).expect("complete");
    let back = DynamicMessage::decode(shape, wire::encode(&ours).as_slice()).expect("ours is protobuf");
    assert!(back == made, "binary: {:?} is not {:?}", back.encode_to_vec(), made.encode_to_vec());

    let text = json::to_vec(&ours);
    let read: M = json::from_slice(&text)
        .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&text)));
    assert_eq!(read, ours, "JSON");
    let generic: serde_json::Value = serde_json::from_slice(&text).expect("JSON that others read");
    assert!(generic.is_object());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn big_messages(tape in proptest::collection::vec(any::<u8>(), 0..4000)) {
        let pool = DescriptorPool::decode(tepui_proto::DESCRIPTOR_SET).expect("the build made it");
        check::<TaskInfo>(&pool, "mesos.v1.TaskInfo", &tape);
        check::<TaskStatus>(&pool, "mesos.v1.TaskStatus", &tape);
        check::<Offer>(&pool, "mesos.v1.Offer", &tape);
        check::<scheduler::Call>(&pool, "mesos.v1.scheduler.Call", &tape);
        check::<scheduler::Event>(&pool, "mesos.v1.scheduler.Event", &tape);
        check::<executor::Call>(&pool, "mesos.v1.executor.Call", &tape);
        check::<executor::Event>(&pool, "mesos.v1.executor.Event", &tape);
        check::<master::Call>(&pool, "mesos.v1.master.Call", &tape);
        check::<master::Response>(&pool, "mesos.v1.master.Response", &tape);
        check::<agent::Response>(&pool, "mesos.v1.agent.Response", &tape);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), json in "[{}\\[\\]\":,a-z0-9 \\\\.-]{0,60}") {
        let _ = wire::decode::<scheduler::Call>(&bytes, LIMIT);
        let _ = json::from_slice::<scheduler::Call>(&bytes);
        let _ = json::from_slice::<scheduler::Call>(json.as_bytes());
        let inside = format!(r#"{{"accept":{json}}}"#);
        let _ = json::from_slice::<scheduler::Call>(inside.as_bytes());
    }
}
