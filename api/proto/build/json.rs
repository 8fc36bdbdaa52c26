//! Writes the JSON form of every message and enum: `ToJson` and `FromJson`, one line per field.
//!
//! The rules of the form live in `src/json`; here is only which of them each field needs.

use std::fmt::Write as _;

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::names;
use crate::shapes::declared_fields;

pub fn write(out: &mut String, pool: &DescriptorPool) {
    let mut enums: Vec<_> = pool.all_enums().map(|kind| names::enum_path(&kind)).collect();
    enums.sort();
    for path in enums {
        writeln!(out, "enum_forms!({path});").expect("writing to a string");
    }
    for message in names::messages(pool) {
        let (path, shape) = (names::message_path(&message), names::shape_name(&message));
        writeln!(out, "message_forms!({path}, {shape}, |message, w, place, reader| {{")
            .expect("writing to a string");
        write_to_json(out, &message);
        out.push_str("}, match place {\n");
        write_from_json(out, &message);
        out.push_str("});\n");
    }
}

fn write_to_json(out: &mut String, message: &MessageDescriptor) {
    for field in declared_fields(message) {
        let slot = format!("message.{}", names::field_name(field.name()));
        let key = format!("w.quoted_key({:?});", format!("\"{}\":", field.name()));
        let line = if field.is_map() {
            map_to_json(&field, &slot, &key)
        } else if field.is_list() {
            let element = value_to_json(&field.kind(), "element");
            format!(
                "if !{slot}.is_empty() {{ {key} w.begin_array(); for element in &{slot} {{ {element} }} w.end_array(); }}"
            )
        } else if matches!(field.kind(), Kind::Message(_)) {
            let value = value_to_json(&field.kind(), "value");
            format!("if let Some(value) = {slot}.as_option() {{ {key} {value} }}")
        } else if field.is_required() {
            format!("{{ let value = &{slot}; {key} {} }}", value_to_json(&field.kind(), "value"))
        } else {
            let value = value_to_json(&field.kind(), "value");
            let unset = default_to_json(&field).map(|value| format!("else {{ {key} {value} }}"));
            format!("if let Some(value) = &{slot} {{ {key} {value} }} {}", unset.unwrap_or_default())
        };
        writeln!(out, "    {line}").expect("writing to a string");
    }
}

fn map_to_json(field: &FieldDescriptor, slot: &str, key: &str) -> String {
    let value = value_to_json(&map_value(field), "value");
    format!(
        "if !{slot}.is_empty() {{ {key} w.begin_object(); for (key, value) in &{slot} {{ w.key(key); {value} }} w.end_object(); }}"
    )
}

/// Writes `value`, which is a reference.
fn value_to_json(kind: &Kind, value: &str) -> String {
    match kind {
        Kind::Double => format!("w.double(*{value});"),
        Kind::Float => panic!("single precision has no JSON form yet"),
        Kind::Bool => format!("w.boolean(*{value});"),
        Kind::String => format!("w.string({value});"),
        Kind::Bytes => format!("w.bytes({value});"),
        Kind::Enum(_) => format!("w.plain_name({value}.proto_name());"),
        Kind::Message(_) => format!("{value}.write_json(w);"),
        Kind::Int32
        | Kind::Int64
        | Kind::Uint32
        | Kind::Uint64
        | Kind::Sint32
        | Kind::Sint64
        | Kind::Fixed32
        | Kind::Fixed64
        | Kind::Sfixed32
        | Kind::Sfixed64 => format!("w.integer(*{value});"),
    }
}

/// v1 writes the explicit default of an unset field, unless the field is deprecated.
fn default_to_json(field: &FieldDescriptor) -> Option<String> {
    let proto = field.field_descriptor_proto();
    let deprecated = proto.options.as_ref().is_some_and(|options| options.deprecated());
    if proto.default_value.is_none() || deprecated {
        return None;
    }
    let kind = field.kind();
    Some(match field.default_value() {
        Value::Bool(value) => format!("w.boolean({value});"),
        Value::I32(value) => format!("w.integer({value}i32);"),
        Value::I64(value) => format!("w.integer({value}i64);"),
        Value::U32(value) => format!("w.integer({value}u32);"),
        Value::U64(value) => format!("w.integer({value}u64);"),
        Value::F64(value) => format!("w.double({value:?}f64);"),
        Value::String(value) => format!("w.string({value:?});"),
        Value::EnumNumber(number) => {
            let value = kind.as_enum().and_then(|kind| kind.get_value(number));
            let value = value.expect("the default of an enum is one of its values");
            format!("w.plain_name({:?});", value.name())
        }
        other => panic!("{}: no JSON for a default like {other:?}", field.full_name()),
    })
}

fn write_from_json(out: &mut String, message: &MessageDescriptor) {
    for (place, field) in declared_fields(message).iter().enumerate() {
        let slot = names::field_name(field.name());
        let read = if field.is_map() {
            map_value(field);
            "map"
        } else if field.is_list() {
            "repeated"
        } else if matches!(field.kind(), Kind::Message(_)) {
            "message"
        } else if field.is_required() {
            "required"
        } else {
            "optional"
        };
        writeln!(out, "    {place} => fields::{read}(&mut message.{slot}, reader),")
            .expect("writing to a string");
    }
    out.push_str("    _ => unreachable!(\"a place beyond the shape\"),\n");
}

fn map_value(field: &FieldDescriptor) -> Kind {
    let Kind::Message(entry) = field.kind() else { unreachable!("a map is a list of entries") };
    let key = entry.map_entry_key_field().kind();
    assert!(matches!(key, Kind::String), "{}: keys of maps are strings in JSON", field.full_name());
    entry.map_entry_value_field().kind()
}
