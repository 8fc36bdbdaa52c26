//! Resources and attributes as the classic endpoints show them: an object from name to number or text.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

use crate::name::Name;
use crate::ranges::{Range, Ranges};
use crate::resource::Value;
use crate::resources::Resources;
use crate::scalar::Scalar;
use crate::set::Set;

/// There even if the collection has none of them.
const ALWAYS: [Name; 4] = [Name::Cpus, Name::Gpus, Name::Mem, Name::Disk];

/// What stands after a name.
#[derive(Clone, Debug, PartialEq)]
pub enum LegacyValue {
    Number(f64),
    /// Ranges as `[31000-32000, 33000-33010]`, sets as `{a, b}`, text as it is.
    Text(String),
}

impl Resources {
    /// The members of the object: `cpus`, `gpus`, `mem` and `disk` first and always, then all others; revocable ones with
    /// the suffix `_revocable`. Amounts of equal names are summed.
    pub fn legacy(&self) -> Vec<(Cow<'_, str>, LegacyValue)> {
        let mut sums: Vec<((&Name, bool), Value)> =
            ALWAYS.iter().map(|name| ((name, false), Value::Scalar(Scalar::ZERO))).collect();
        for resource in self.iter() {
            let key = (resource.name(), resource.is_revocable());
            match sums.iter_mut().find(|(own, _)| *own == key) {
                Some((_, sum)) => sum.add(resource.value()),
                None => sums.push((key, resource.value().clone())),
            }
        }
        sums.into_iter().map(|((name, revocable), sum)| (legacy_name(name, revocable), sum.into())).collect()
    }
}

/// The members of the object, in their original order.
pub fn legacy_attributes(attributes: &[pb::Attribute]) -> impl Iterator<Item = (&str, LegacyValue)> {
    attributes.iter().map(|attribute| (attribute.name.as_str(), attribute_value(attribute)))
}

fn attribute_value(attribute: &pb::Attribute) -> LegacyValue {
    match attribute.r#type {
        pb::value::Type::SCALAR => LegacyValue::Number(attribute.scalar.value),
        pb::value::Type::RANGES => {
            let ranges = attribute.ranges.range.iter().filter_map(|range| Range::new(range.begin, range.end));
            LegacyValue::Text(ranges.collect::<Ranges>().to_string())
        }
        pb::value::Type::SET => {
            LegacyValue::Text(attribute.set.item.iter().map(String::as_str).collect::<Set>().to_string())
        }
        pb::value::Type::TEXT => LegacyValue::Text(attribute.text.value.clone()),
    }
}

fn legacy_name(name: &Name, revocable: bool) -> Cow<'_, str> {
    if revocable { Cow::Owned(format!("{name}_revocable")) } else { Cow::Borrowed(name.as_str()) }
}

impl From<Value> for LegacyValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Scalar(amount) => LegacyValue::Number(amount.to_f64()),
            Value::Ranges(ranges) => LegacyValue::Text(ranges.to_string()),
            Value::Set(set) => LegacyValue::Text(set.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::parse;
    use crate::resource::Revocable;

    fn object(resources: &Resources) -> String {
        let member = |(name, value): (Cow<'_, str>, LegacyValue)| match value {
            LegacyValue::Number(number) => format!("{name}={number:?}"),
            LegacyValue::Text(text) => format!("{name}={text}"),
        };
        resources.legacy().into_iter().map(member).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn standard_names_are_always_present() {
        assert_eq!(object(&Resources::new()), "cpus=0.0 gpus=0.0 mem=0.0 disk=0.0");
    }

    #[test]
    fn reservations_are_summed_and_revocable_is_separate() {
        let text = "cpus:1.5;cpus(web):2;ports:[31000-31005];ports(web):[32000-32000];foo:0.5;zones:{b,a}";
        let all: Resources = parse::resources(text, "*").expect("valid").into_iter().collect();
        let revocable = all.scalars().flatten(Revocable::UsageSlack);
        assert_eq!(
            object(&(all + &revocable)),
            "cpus=3.5 gpus=0.0 mem=0.0 disk=0.0 cpus_revocable=3.5 ports=[31000-31005, 32000-32000] foo=0.5 \
             foo_revocable=0.5 zones={a, b}"
        );
    }

    #[test]
    fn attributes_keep_their_order() {
        let attributes = parse::attributes("rack:a:1;level:3;span:[4-5,1-2]").expect("valid");
        let shown: Vec<_> = legacy_attributes(&attributes).collect();
        let text = |text: &str| LegacyValue::Text(text.into());
        assert_eq!(
            shown,
            vec![("rack", text("a:1")), ("level", LegacyValue::Number(3.0)), ("span", text("[1-2, 4-5]"))]
        );
    }
}
