//! Labels of engines as a function of the offers held.

use alloc::format;
use alloc::string::ToString;

use serde_json::json;

use super::*;
use crate::testing::{agent, agent_with, engine};

#[test]
fn res_type_follows_the_offers() {
    for (offers, expected) in [
        (&[][..], None),
        (&[("O1", "cpus:1")], Some("regular")),
        (&[("O1", "mem:64")], Some("regular")),
        (&[("O1", "rev cpus:1")], Some("revocable")),
        (&[("O1", "rev cpus:0.4")], Some("revocable")),
        (&[("O1", "cpus:1 + rev cpus:1")], Some("any")),
        (&[("O1", "cpus:1"), ("O2", "rev cpus:1")], Some("any")),
        (&[("O1", "rev cpus:1"), ("O2", "rev mem:1")], Some("revocable")),
        // Disk and ports are in nearly every offer and say nothing.
        (&[("O1", "rev cpus:1 + disk:100;ports:[1-2]")], Some("revocable")),
        (&[("O1", "disk:100;ports:[1-2]")], None),
    ] {
        assert_eq!(agent("n", offers).res_type(), expected, "{offers:?}");
    }
}

#[test]
fn offers_override_the_res_type_label_of_the_daemon() {
    let named =
        |offers| agent_with(engine("n", &[("res-type", "gold"), ("a", "b")], &[], &[]), offers).labels();
    let text = |labels: BTreeMap<String, String>| format!("{labels:?}");
    assert_eq!(text(named(&[("O1", "cpus:1")])), r#"{"a": "b", "res-type": "regular"}"#);
    assert_eq!(text(named(&[])), r#"{"a": "b"}"#);
}

#[test]
fn engine_info_is_parsed_into_id_name_and_labels() {
    let info = json!({
        "ID": "E", "Name": "node-0", "NCPU": 2, "MemTotal": 1024, "Driver": "vfs", "KernelVersion": "6.1",
        "OperatingSystem": "Debian", "OSType": "linux", "Labels": ["disk=ssd", "node=x", "storagedriver=mine"],
    });
    let engine = Engine::from_info(&info).expect("an engine");
    assert_eq!((&*engine.id, &*engine.name), ("E", "node-0"));
    assert_eq!(
        format!("{:?}", engine.labels),
        r#"{"disk": "ssd", "kernelversion": "6.1", "operatingsystem": "Debian", "ostype": "linux", "storagedriver": "vfs"}"#
    );
    let unlabelled = json!({"NCPU": 2, "MemTotal": 1024, "Labels": ["disk"]});
    assert_eq!(Engine::from_info(&unlabelled), Err("its label \"disk\" has no value".to_string()));
    let manager = json!({"NCPU": 0, "MemTotal": 0});
    assert!(
        Engine::from_info(&manager).is_err_and(|error| error.contains("a Swarm manager is not an engine"))
    );
}
