//! Rust names of protobuf items, as spelled by the struct generator.

use protox::prost_reflect::{DescriptorPool, EnumDescriptor, MessageDescriptor};

/// `crate::mesos::v1::offer::operation::Launch` for `mesos.v1.Offer.Operation.Launch`.
pub fn message_path(message: &MessageDescriptor) -> String {
    let parents = parents(message.parent_message());
    type_path(message.package_name(), &parents, message.name())
}

pub fn enum_path(kind: &EnumDescriptor) -> String {
    let parents = parents(kind.parent_message());
    type_path(kind.package_name(), &parents, kind.name())
}

/// The name of the static table of a message.
pub fn shape_name(message: &MessageDescriptor) -> String {
    message.full_name().replace('.', "_")
}

/// A field name that may be a keyword.
pub fn field_name(name: &str) -> String {
    const KEYWORDS: [&str; 9] = ["type", "ref", "move", "match", "use", "where", "loop", "in", "static"];
    if KEYWORDS.contains(&name) { format!("r#{name}") } else { name.to_string() }
}

/// Messages in a fixed order, without the entries of maps.
pub fn messages(pool: &DescriptorPool) -> Vec<MessageDescriptor> {
    let mut messages: Vec<_> = pool.all_messages().filter(|message| !message.is_map_entry()).collect();
    messages.sort_by(|a, b| a.full_name().cmp(b.full_name()));
    messages
}

fn parents(innermost: Option<MessageDescriptor>) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = innermost;
    while let Some(message) = next {
        names.push(message.name().to_string());
        next = message.parent_message();
    }
    names.reverse();
    names
}

fn type_path(package: &str, parents: &[String], name: &str) -> String {
    let mut path = String::from("crate::");
    for part in package.split('.') {
        path += part;
        path += "::";
    }
    for parent in parents {
        path += &snake_case(parent);
        path += "::";
    }
    path + name
}

/// `TaskStatus` to `task_status`, `CSIPluginInfo` to `csi_plugin_info`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (place, letter) in letters.iter().enumerate() {
        if letter.is_uppercase() && place > 0 {
            let after_word = letters[place - 1].is_lowercase();
            let ends_acronym = letters[place - 1].is_uppercase()
                && letters.get(place + 1).is_some_and(|next| next.is_lowercase());
            if after_word || ends_acronym {
                snake.push('_');
            }
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
