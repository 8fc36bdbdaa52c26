//! The MasterInfo of a leading master, as JSON for clients that look for it.

use tepui_proto::json;
use tepui_proto::mesos::v1 as pb;

/// Where it listens, as `host:port`; none if it does not say.
pub fn leader_authority(introduction: &[u8]) -> Option<String> {
    let info: pb::MasterInfo = json::from_slice(introduction).ok()?;
    let host = info.hostname.as_deref().or(info.address.ip.as_deref())?;
    Some(match host.contains(':') {
        true => format!("[{host}]:{}", info.port),
        false => format!("{host}:{}", info.port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_leader_is_read_from_its_master_info() {
        for (info, expected) in [
            (r#"{"id":"m","ip":1,"port":5050,"hostname":"h"}"#, Some("h:5050")),
            (r#"{"id":"m","ip":0,"port":1,"hostname":"::1"}"#, Some("[::1]:1")),
            (r#"{"id":"m","ip":0,"port":1,"address":{"ip":"10.0.0.1","port":1}}"#, Some("10.0.0.1:1")),
            (r#"{"id":"m","ip":0,"port":1}"#, None),
            ("what", None),
        ] {
            assert_eq!(leader_authority(info.as_bytes()).as_deref(), expected, "{info}");
        }
    }
}
