//! network/ports: compares the TCP ports that a container listens on with its `ports` resources.

use std::collections::{BTreeMap, BTreeSet};

use tepui_proto::mesos::v1::{self as pb, task_status::Reason};
use tepui_types::{ContainerId, Termination};

use super::IsolatorOptions;

/// How the kernel writes a socket that listens.
const LISTEN: &str = "0A";

/// The `ports` among resources, as far as ports can be.
pub fn ports(resources: &[pb::Resource]) -> Vec<(u16, u16)> {
    let ranges = resources.iter().filter(|one| one.name == "ports").flat_map(|one| &one.ranges.range);
    let port = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
    ranges.map(|range| (port(range.begin), port(range.end))).collect()
}

/// Ports that the processes listen on without a resource. Blocking.
pub(super) fn unallocated(
    processes: &[i32],
    given: &[(u16, u16)],
    options: &IsolatorOptions,
) -> Option<BTreeSet<u16>> {
    let mut sockets = BTreeMap::new();
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        sockets.extend(listening(&std::fs::read_to_string(file).unwrap_or_default()));
    }
    let found: BTreeSet<u16> = processes.iter().flat_map(|pid| of_process(*pid, &sockets)).collect();
    let found = outside(found, given, options.policed_ports.as_deref());
    (!found.is_empty()).then_some(found)
}

/// Ports outside of the resources; within `policed`, if set.
fn outside(found: BTreeSet<u16>, given: &[(u16, u16)], policed: Option<&[(u16, u16)]>) -> BTreeSet<u16> {
    let within = |ranges: &[(u16, u16)], port| ranges.iter().any(|(from, to)| (*from..=*to).contains(&port));
    let counts = |port: &u16| policed.is_none_or(|policed| within(policed, *port)) && !within(given, *port);
    found.into_iter().filter(counts).collect()
}

/// The inodes of listening sockets with their ports.
fn listening(text: &str) -> BTreeMap<u64, u16> {
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (address, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        let port = u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok()?;
        (*state == LISTEN).then_some((inode.parse().ok()?, port))
    };
    text.lines().filter_map(parse).collect()
}

fn of_process(pid: i32, sockets: &BTreeMap<u64, u16>) -> Vec<u16> {
    let mut found = Vec::new();
    // A process that has exited listens no more.
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let Ok(link) = std::fs::read_link(entry.path()) else { continue };
        let inode =
            link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        found.extend(inode.and_then(|inode: u64| sockets.get(&inode)));
    }
    found
}

pub(super) fn limitation(id: &ContainerId, ports: &BTreeSet<u16>) -> Termination {
    let ranges = ranges(ports);
    let shown: Vec<String> = ranges.iter().map(|(from, to)| format!("{from}-{to}")).collect();
    let range = |(from, to): &(u16, u16)| pb::value::Range {
        begin: (*from).into(),
        end: (*to).into(),
        ..Default::default()
    };
    let limited = pb::Resource {
        name: String::from("ports"),
        r#type: pb::value::Type::RANGES,
        ranges: pb::value::Ranges { range: ranges.iter().map(range).collect(), ..Default::default() }.into(),
        ..Default::default()
    };
    Termination {
        state: Some(pb::TaskState::TASK_FAILED),
        reason: Some(Reason::REASON_CONTAINER_LIMITATION),
        message: Some(format!(
            "Container '{id}' is listening on unallocated port(s): [{}]",
            shown.join(", ")
        )),
        limited: vec![limited],
        ..Default::default()
    }
}

fn ranges(ports: &BTreeSet<u16>) -> Vec<(u16, u16)> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for port in ports {
        match ranges.last_mut() {
            Some((_, to)) if to.checked_add(1) == Some(*port) => *to = *port,
            _ => ranges.push((*port, *port)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_parsed_from_proc_net() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                    \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0\n\
                    \x20  1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0\n";
        assert_eq!(listening(text), BTreeMap::from([(4242, 8080)]));
    }

    #[test]
    fn only_unallocated_ports_in_the_policed_range_are_reported() {
        let found = BTreeSet::from([80, 81, 8080, 9000]);
        for (given, policed, left) in [
            (&[][..], None, vec![80, 81, 8080, 9000]),
            (&[(80, 81)], None, vec![8080, 9000]),
            (&[(80, 81)], Some(&[(8000, 8999)][..]), vec![8080]),
            (&[(1, 65535)], None, vec![]),
        ] {
            assert_eq!(outside(found.clone(), given, policed), left.into_iter().collect(), "{given:?}");
        }
        assert_eq!(ranges(&found), [(80, 81), (8080, 8080), (9000, 9000)]);
        let message = limitation(&ContainerId::root("c"), &found).message.expect("one");
        assert_eq!(
            message,
            "Container 'c' is listening on unallocated port(s): [80-81, 8080-8080, 9000-9000]"
        );
    }
}
