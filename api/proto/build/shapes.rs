//! Writes the static table (`Shape`) of every message.

use std::fmt::Write as _;

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::names;

/// As many as a set of fields has bits, see `src/shape.rs`.
const FIELDS_MAX: usize = 128;

pub fn write(out: &mut String, pool: &DescriptorPool) {
    let mut messages: Vec<_> = pool.all_messages().collect();
    messages.sort_by(|a, b| a.full_name().cmp(b.full_name()));
    for message in messages {
        write_shape(out, &message);
    }
}

/// The fields in order of declaration.
pub fn declared_fields(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let declared = message.descriptor_proto().field.iter();
    declared
        .map(|field| message.get_field_by_name(field.name()).expect("a message knows its own fields"))
        .collect()
}

fn write_shape(out: &mut String, message: &MessageDescriptor) {
    let fields = declared_fields(message);
    assert!(fields.len() <= FIELDS_MAX, "{} has too many fields", message.full_name());
    let required = fields.iter().enumerate().filter(|(_, field)| field.is_required());
    let required = required.fold(0u128, |bits, (place, _)| bits | (1 << place));
    let name = message.full_name();
    writeln!(
        out,
        "static {}: Shape = Shape {{ name: {name:?}, required: {required:#x}, fields: &[",
        names::shape_name(message)
    )
    .expect("writing to a string");
    for field in fields {
        let (name, number, kind) = (field.name(), field.number(), kind(&field));
        let repeated = field.is_list() || field.is_map();
        writeln!(
            out,
            "    Field {{ name: {name:?}, number: {number}, repeated: {repeated}, kind: Kind::{kind} }},"
        )
        .expect("writing to a string");
    }
    out.push_str("] };\n");
}

fn kind(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Float => panic!("{}: single precision is not checked for NaN yet", field.full_name()),
        Kind::Double if field.is_list() => {
            panic!("{}: the NaN check does not look into lists", field.full_name())
        }
        Kind::Double => "Double".into(),
        Kind::Bool
        | Kind::Int32
        | Kind::Int64
        | Kind::Uint32
        | Kind::Uint64
        | Kind::Sint32
        | Kind::Sint64 => "Varint".into(),
        Kind::Fixed32 | Kind::Sfixed32 => "Fixed32".into(),
        Kind::Fixed64 | Kind::Sfixed64 => "Fixed64".into(),
        Kind::String | Kind::Bytes => "Bytes".into(),
        Kind::Enum(kind) => format!("Enum(|value| {}::from_i32(value).is_some())", names::enum_path(&kind)),
        Kind::Message(inner) => format!("Message(&{})", names::shape_name(&inner)),
    }
}
