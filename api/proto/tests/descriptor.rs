//! The wire as one text, `wire.txt`: every message, field, number, label, type and default, every enum value.
//!
//! A change of the wire shows as a difference in review. To accept one: `UPDATE_EXPECT=1 cargo nextest run -p tepui-proto`.

use std::fmt::Write as _;

use protox::prost_reflect::{
    Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor,
};

#[test]
fn descriptors_match_the_recorded_wire_format() {
    let pool = DescriptorPool::decode(tepui_proto::DESCRIPTOR_SET).expect("the build made it");
    let mut text = String::new();
    for file in pool.files() {
        writeln!(text, "file {} package {}", file.name(), file.package_name()).expect("writing to a string");
        file.enums().for_each(|kind| write_enum(&mut text, &kind));
        file.messages().for_each(|message| write_message(&mut text, &message));
    }
    expect_test::expect_file!["../wire.txt"].assert_eq(&text);
}

#[test]
fn descriptor_set_contains_its_imports() {
    let pool = DescriptorPool::decode(tepui_proto::DESCRIPTOR_SET).expect("the build made it");
    for name in ["mesos.v1.TaskInfo", "google.protobuf.Duration", "tepui.agent.v1.Call"] {
        assert!(pool.get_message_by_name(name).is_some(), "{name}");
    }
}

fn write_enum(text: &mut String, kind: &EnumDescriptor) {
    writeln!(text, "\nenum {}", kind.full_name()).expect("writing to a string");
    for value in &kind.enum_descriptor_proto().value {
        writeln!(text, "  {} = {}", value.name(), value.number()).expect("writing to a string");
    }
}

fn write_message(text: &mut String, message: &MessageDescriptor) {
    if message.is_map_entry() {
        return;
    }
    writeln!(text, "\nmessage {}", message.full_name()).expect("writing to a string");
    for declared in &message.descriptor_proto().field {
        let field = message.get_field_by_name(declared.name()).expect("its own field");
        writeln!(text, "  {}", field_line(&field)).expect("writing to a string");
    }
    message.child_enums().for_each(|kind| write_enum(text, &kind));
    message.child_messages().for_each(|inner| write_message(text, &inner));
}

fn field_line(field: &FieldDescriptor) -> String {
    let proto = field.field_descriptor_proto();
    let label = match field.cardinality() {
        _ if field.is_map() => "map",
        Cardinality::Optional => "optional",
        Cardinality::Required => "required",
        Cardinality::Repeated => "repeated",
    };
    let mut line = format!("{label} {} {} = {}", type_name(field), field.name(), field.number());
    if let Some(default) = &proto.default_value {
        write!(line, " [default = {default}]").expect("writing to a string");
    }
    if proto.options.as_ref().is_some_and(|options| options.deprecated()) {
        line += " [deprecated]";
    }
    line
}

fn type_name(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            format!(
                "<{}, {}>",
                type_name(&entry.map_entry_key_field()),
                type_name(&entry.map_entry_value_field())
            )
        }
        Kind::Message(message) => message.full_name().to_string(),
        Kind::Enum(kind) => kind.full_name().to_string(),
        scalar => format!("{scalar:?}"),
    }
}
