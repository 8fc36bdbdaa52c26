//! What an operator writes: `--resources` and `--attributes`.
//!
//! Resources are `name(role):value;…` or a JSON array of `Resource`; attributes are `name:value;…`. A value is a number,
//! ranges `[1-10,20-30]`, a set `{a,b}`, or else text; blanks in it do not matter.
//! Never: files (the caller reads those) or what the machine has.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

use crate::error::{ParseFault, ResourceError};
use crate::name::Name;
use crate::ranges::{Range, Ranges};
use crate::reservation::Reservation;
use crate::resource::{Resource, Value};
use crate::role::{Role, check_role};
use crate::scalar::{Scalar, ScalarError};
use crate::set::Set;

/// The value of `--resources`, either form. Without a role a resource gets `default_role`; a role other than `*`
/// means a static reservation. Amounts of zero stay in the list: they disable the detection of that name.
pub fn resources(text: &str, default_role: &str) -> Result<Vec<Resource>, ResourceError> {
    let role = checked_role(default_role, default_role)?;
    let resources = match text.trim_start().starts_with('[') {
        true => from_json(text, &role)?,
        false => items(text, &[';']).map(|item| resource(item, &role)).collect::<Result<Vec<_>, _>>()?,
    };
    same_types(&resources)?;
    Ok(resources)
}

/// The value of `--attributes`.
pub fn attributes(text: &str) -> Result<Vec<pb::Attribute>, ResourceError> {
    items(text, &[';', '\n']).map(attribute).collect()
}

fn items<'a>(text: &'a str, separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    text.split(separators).map(str::trim).filter(|item| !item.is_empty())
}

fn resource(item: &str, default_role: &Role) -> Result<Resource, ResourceError> {
    let (name, value) = item.split_once(':').ok_or_else(|| fault(item, ParseFault::Colon))?;
    if value.contains(':') {
        return Err(fault(item, ParseFault::Colon));
    }
    let (name, role) = match name.trim().split_once('(') {
        None => (name, default_role.clone()),
        Some((name, rest)) => {
            let role = rest.strip_suffix(')').ok_or_else(|| fault(item, ParseFault::Parentheses))?;
            (name, checked_role(role.trim(), item)?)
        }
    };
    if name.contains(['(', ')']) {
        return Err(fault(item, ParseFault::Parentheses));
    }
    let name = name.trim();
    not_empty(item, name, value)?;
    let value = match parse_value(value).map_err(|why| fault(item, why))? {
        Parsed::Scalar(amount) => match Scalar::from_f64(amount) {
            Ok(Scalar::ZERO) if amount > 0.0 => return Err(fault(item, ParseFault::RoundsToZero)),
            Ok(amount) => Value::Scalar(amount),
            Err(error) => return Err(fault(item, ParseFault::Scalar(error))),
        },
        Parsed::Ranges(ranges) => Value::Ranges(ranges),
        Parsed::Set(set) => Value::Set(set),
        Parsed::Text(_) => return Err(fault(item, ParseFault::Text)),
    };
    Ok(reserve(Resource::new(Name::new(name), value), &role))
}

fn attribute(item: &str) -> Result<pb::Attribute, ResourceError> {
    let (name, value) = item.split_once(':').ok_or_else(|| fault(item, ParseFault::Colon))?;
    let (name, value) = (name.trim(), value.trim());
    not_empty(item, name, value)?;
    let mut attribute = pb::Attribute { name: name.into(), ..Default::default() };
    match parse_value(value).map_err(|why| fault(item, why))? {
        Parsed::Scalar(value) => {
            attribute.r#type = pb::value::Type::SCALAR;
            attribute.scalar = pb::value::Scalar { value, ..Default::default() }.into();
        }
        Parsed::Ranges(ranges) => {
            let range = |Range { begin, end }| pb::value::Range { begin, end, ..Default::default() };
            attribute.r#type = pb::value::Type::RANGES;
            attribute.ranges =
                pb::value::Ranges { range: ranges.iter().map(range).collect(), ..Default::default() }.into();
        }
        Parsed::Text(value) => {
            attribute.r#type = pb::value::Type::TEXT;
            attribute.text = pb::value::Text { value, ..Default::default() }.into();
        }
        Parsed::Set(_) => return Err(fault(item, ParseFault::Set)),
    }
    Ok(attribute)
}

fn not_empty(item: &str, name: &str, value: &str) -> Result<(), ResourceError> {
    match (name.is_empty(), value.trim().is_empty()) {
        (true, _) => Err(fault(item, ParseFault::EmptyName)),
        (false, true) => Err(fault(item, ParseFault::EmptyValue)),
        (false, false) => Ok(()),
    }
}

enum Parsed {
    Scalar(f64),
    Ranges(Ranges),
    Set(Set),
    Text(String),
}

fn parse_value(text: &str) -> Result<Parsed, ParseFault> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(ParseFault::Brackets)?;
        return words(inner).map(range).collect::<Result<Ranges, _>>().map(Parsed::Ranges);
    }
    if let Some(inner) = text.strip_prefix('{') {
        let inner = inner.strip_suffix('}').ok_or(ParseFault::Brackets)?;
        return match inner.contains(['[', ']', '{', '}']) {
            true => Err(ParseFault::Brackets),
            false => Ok(Parsed::Set(words(inner).collect())),
        };
    }
    let balanced = |open, close| text.matches(open).count() == text.matches(close).count();
    if !balanced('[', ']') || !balanced('{', '}') {
        return Err(ParseFault::Brackets);
    }
    match text.parse::<f64>() {
        Ok(amount) if amount.is_nan() => Err(ParseFault::Scalar(ScalarError::NotANumber)),
        Ok(amount) if amount < 0.0 => Err(ParseFault::Scalar(ScalarError::Negative)),
        Ok(amount) if amount.is_infinite() => Err(ParseFault::Scalar(ScalarError::Infinite)),
        Ok(amount) => Ok(Parsed::Scalar(amount)),
        Err(_) => Ok(Parsed::Text(text)),
    }
}

fn words(inner: &str) -> impl Iterator<Item = &str> {
    inner.split(',').filter(move |word| !(inner.is_empty() && word.is_empty()))
}

fn range(word: &str) -> Result<Range, ParseFault> {
    let bad = || ParseFault::Range(word.into());
    let (begin, end) = word.split_once('-').ok_or_else(bad)?;
    let range = Range::new(begin.parse().map_err(|_| bad())?, end.parse().map_err(|_| bad())?);
    range.ok_or_else(bad)
}

fn from_json(text: &str, default_role: &Role) -> Result<Vec<Resource>, ResourceError> {
    let messages: Vec<pb::Resource> = tepui_proto::json::list_from_slice(text.as_bytes())
        .map_err(|error| fault("--resources", ParseFault::Json(error.to_string())))?;
    messages.iter().map(|message| from_message(message, default_role)).collect()
}

fn from_message(message: &pb::Resource, default_role: &Role) -> Result<Resource, ResourceError> {
    let resource = Resource::from_proto(message)?;
    let at_run_time = [
        (resource.is_persistent_volume(), "a persistent volume"),
        (resource.is_revocable(), "a revocable resource"),
        (resource.is_dynamically_reserved(), "a dynamic reservation"),
        (resource.allocation().is_some(), "an allocation"),
    ];
    if let Some((_, what)) = at_run_time.into_iter().find(|(is_so, _)| *is_so) {
        return Err(fault(&message.name, ParseFault::AtRunTime(what)));
    }
    match message.role.is_none() && message.reservations.is_empty() {
        true => Ok(reserve(resource, default_role)),
        false => Ok(resource),
    }
}

fn reserve(resource: Resource, role: &Role) -> Resource {
    match role.as_str() {
        "*" => resource,
        _ => resource.push_reservation(Reservation::fixed(role.clone())),
    }
}

fn same_types(resources: &[Resource]) -> Result<(), ResourceError> {
    for (i, resource) in resources.iter().enumerate() {
        let other = resources[..i].iter().find(|other| other.name() == resource.name());
        if other.is_some_and(|other| !other.value().is_same_type(resource.value())) {
            return Err(fault(resource.name().as_str(), ParseFault::SeveralTypes));
        }
    }
    Ok(())
}

fn checked_role(role: &str, item: &str) -> Result<Role, ResourceError> {
    match check_role(role) {
        Ok(()) => Ok(Role::from(role)),
        Err(error) => Err(fault(item, ParseFault::Role(error))),
    }
}

fn fault(item: &str, fault: ParseFault) -> ResourceError {
    ResourceError::Parse { item: item.to_string(), fault }
}

#[cfg(test)]
mod tests;
