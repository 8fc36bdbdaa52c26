//! An agent as placement sees it: where it is and what its attributes are.

use tepui_proto::mesos::v1 as pb;
use tepui_types::AgentId;

use super::record::Pod;
use crate::spec::Subject;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Site {
    pub agent: AgentId,
    pub hostname: String,
    pub region: Option<String>,
    pub zone: Option<String>,
    pub attributes: Vec<(String, String)>,
}

impl Site {
    pub fn of_offer(offer: &pb::Offer) -> Site {
        let domain = &offer.domain.fault_domain;
        Site {
            agent: AgentId::new(offer.agent_id.value.as_str()),
            hostname: offer.hostname.clone(),
            region: domain.region.as_option().map(|region| region.name.clone()),
            zone: domain.zone.as_option().map(|zone| zone.name.clone()),
            attributes: offer.attributes.iter().map(|own| (own.name.clone(), text(own))).collect(),
        }
    }

    /// The values of a subject; an agent may have several attributes of one name.
    pub fn values(&self, subject: &Subject) -> Vec<&str> {
        values(subject, &self.hostname, self.region.as_deref(), self.zone.as_deref(), &self.attributes)
    }
}

/// The values of a subject where a pod is.
pub(super) fn values_of<'p>(pod: &'p Pod, subject: &Subject) -> Vec<&'p str> {
    values(subject, &pod.hostname, pod.region.as_deref(), pod.zone.as_deref(), &pod.attributes)
}

fn values<'v>(
    subject: &Subject,
    hostname: &'v str,
    region: Option<&'v str>,
    zone: Option<&'v str>,
    attributes: &'v [(String, String)],
) -> Vec<&'v str> {
    match subject {
        Subject::Hostname => vec![hostname],
        Subject::Region => region.into_iter().collect(),
        Subject::Zone => zone.into_iter().collect(),
        Subject::Attribute(name) => {
            let own = attributes.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
            own.map(|(_, value)| value.as_str()).collect()
        }
    }
}

/// An attribute as text: scalars with at most three decimals, ranges and sets as on the agent's command line.
pub fn text(attribute: &pb::Attribute) -> String {
    if let Some(scalar) = attribute.scalar.as_option() {
        return (scalar.value * 1000.0)
            .round()
            .to_string()
            .parse::<f64>()
            .map_or_else(|_| scalar.value.to_string(), |thousandths| (thousandths / 1000.0).to_string());
    }
    if let Some(ranges) = attribute.ranges.as_option() {
        let range = |range: &pb::value::Range| format!("{}-{}", range.begin, range.end);
        return format!("[{}]", ranges.range.iter().map(range).collect::<Vec<_>>().join(","));
    }
    if let Some(set) = attribute.set.as_option() {
        return format!("{{{}}}", set.item.join(","));
    }
    attribute.text.as_option().map(|text| text.value.clone()).unwrap_or_default()
}
