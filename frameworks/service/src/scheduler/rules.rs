//! Placement rules of pod types, and the counts of pods that some of them need.
//!
//! Counts follow the pods as they get and lose their agents: a check costs the same whatever the number of pods.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;

use super::record::Pod;
use super::site::{Site, values_of};
use crate::spec::{Constraint, Operator, PodSpec, ServiceSpec, Subject};

#[derive(Debug, Default)]
pub(super) struct Rules {
    by_type: BTreeMap<String, TypeRules>,
}

#[derive(Debug, Default)]
struct TypeRules {
    rules: Vec<Rule>,
    /// For each rule that counts: pods by value.
    counts: Vec<BTreeMap<String, u32>>,
}

#[derive(Debug)]
struct Rule {
    constraint: Constraint,
    pattern: Option<Regex>,
}

impl Rules {
    /// Rules of a spec with the pods that are placed. Pods without a rule for regions are bound to the service's region.
    pub fn new<'p>(spec: &ServiceSpec, region: Option<&str>, pods: impl Iterator<Item = &'p Pod>) -> Rules {
        let rules = |pod: &PodSpec| {
            let mut constraints = pod.placement.clone();
            let has_region = constraints.iter().any(|own| own.subject == Subject::Region);
            if let Some(region) = region.filter(|_| !has_region) {
                let operator = Operator::Is(region.to_owned());
                constraints.push(Constraint { subject: Subject::Region, operator });
            }
            let rules: Vec<Rule> = constraints.into_iter().map(Rule::new).collect();
            let counts = rules.iter().map(|_| BTreeMap::new()).collect();
            (pod.name.clone(), TypeRules { rules, counts })
        };
        let mut all = Rules { by_type: spec.pods.iter().map(rules).collect() };
        pods.for_each(|pod| all.count(pod, true));
        all
    }

    /// A pod was placed, or left its agent.
    pub fn count(&mut self, pod: &Pod, is_added: bool) {
        let Some(TypeRules { rules, counts }) = self.by_type.get_mut(&pod.instance.pod) else { return };
        for (rule, counts) in rules.iter().zip(counts).filter(|(rule, _)| rule.is_counting()) {
            for value in values_of(pod, &rule.constraint.subject).into_iter().take(1) {
                let count = counts.entry(value.to_owned()).or_default();
                *count = if is_added { *count + 1 } else { count.saturating_sub(1) };
                if *count == 0 {
                    counts.remove(value);
                }
            }
        }
    }

    /// The first rule that excludes an agent for one more pod of the type.
    pub fn check(&self, pod_type: &str, site: &Site) -> Result<(), String> {
        let Some(TypeRules { rules, counts }) = self.by_type.get(pod_type) else { return Ok(()) };
        for (rule, counts) in rules.iter().zip(counts) {
            if !rule.allows(&site.values(&rule.constraint.subject), counts) {
                return Err(rule.constraint.to_string());
            }
        }
        Ok(())
    }

    /// As `check`, with rules that do not count only: whether the agent could ever be used.
    pub fn check_fixed(&self, pod_type: &str, site: &Site) -> Result<(), String> {
        let Some(TypeRules { rules, .. }) = self.by_type.get(pod_type) else { return Ok(()) };
        let none = BTreeMap::new();
        let excluded = |rule: &&Rule| !rule.allows(&site.values(&rule.constraint.subject), &none);
        match rules.iter().find(excluded) {
            Some(rule) => Err(rule.constraint.to_string()),
            None => Ok(()),
        }
    }

    /// Whether a rule of the type names regions, zones.
    pub fn references(&self, pod_type: &str, subject: &Subject) -> bool {
        let rules = self.by_type.get(pod_type).map(|own| own.rules.as_slice()).unwrap_or_default();
        rules.iter().any(|rule| rule.constraint.subject == *subject)
    }
}

impl Rule {
    fn new(constraint: Constraint) -> Rule {
        let pattern = match &constraint.operator {
            Operator::Like(pattern) | Operator::Unlike(pattern) => {
                Regex::new(&format!("^(?:{pattern})$")).ok()
            }
            Operator::MaxPer(_) | Operator::Is(_) | Operator::IsNot(_) | Operator::GroupBy(_) => None,
        };
        Rule { constraint, pattern }
    }

    fn is_counting(&self) -> bool {
        matches!(self.constraint.operator, Operator::MaxPer(_) | Operator::GroupBy(_))
    }

    fn allows(&self, values: &[&str], counts: &BTreeMap<String, u32>) -> bool {
        let matches = |value: &&str| self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(value));
        match &self.constraint.operator {
            Operator::MaxPer(most) => {
                values.first().is_some_and(|value| counts.get(*value).copied().unwrap_or(0) < *most)
            }
            Operator::Is(expected) => values.iter().any(|value| is_equal(value, expected)),
            Operator::IsNot(excluded) => !values.iter().any(|value| is_equal(value, excluded)),
            Operator::Like(_) => values.iter().any(matches),
            Operator::Unlike(_) => !values.iter().any(matches),
            Operator::GroupBy(expected) => values.first().is_some_and(|value| {
                let own = counts.get(*value).copied().unwrap_or(0);
                let is_least = counts.values().all(|count| own <= *count);
                let is_new_enough = expected.is_none_or(|expected| counts.len() >= expected as usize);
                is_least && (is_new_enough || own == 0)
            }),
        }
    }
}

/// Numbers are equal if they are so in three decimals.
fn is_equal(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().map(|number| (number * 1000.0).round());
    a == b || number(a).zip(number(b)).is_some_and(|(a, b)| a == b)
}

impl fmt::Display for Constraint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Hostname => out.write_str("hostname")?,
            Subject::Region => out.write_str("@region")?,
            Subject::Zone => out.write_str("@zone")?,
            Subject::Attribute(name) => out.write_str(name)?,
        }
        match &self.operator {
            Operator::MaxPer(1) => out.write_str(":UNIQUE"),
            Operator::MaxPer(most) => write!(out, ":MAX_PER:{most}"),
            Operator::Is(value) => write!(out, ":IS:{value}"),
            Operator::IsNot(value) => write!(out, ":IS_NOT:{value}"),
            Operator::Like(pattern) => write!(out, ":LIKE:{pattern}"),
            Operator::Unlike(pattern) => write!(out, ":UNLIKE:{pattern}"),
            Operator::GroupBy(None) => out.write_str(":GROUP_BY"),
            Operator::GroupBy(Some(values)) => write!(out, ":GROUP_BY:{values}"),
        }
    }
}
