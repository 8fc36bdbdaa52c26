//! What is applied, what is stored, and what an old store looks like.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use expect_test::expect;
use proptest::prelude::*;
use tepui_fsm::{Durable, Wall};
use tepui_proto::mesos::v1::{AgentID, AgentInfo};
use tepui_types::AgentId;

use crate::{LoadError, Operation, Registry};

type Store = BTreeMap<String, Vec<u8>>;

fn write(store: &mut Store, operation: &Operation) {
    let mut writes = Vec::new();
    operation.writes(&mut writes);
    for write in writes {
        match write.value {
            Some(value) => store.insert(write.key, value),
            None => store.remove(&write.key),
        };
    }
}

fn load(store: &Store) -> Result<Registry, LoadError> {
    Registry::load(store.clone())
}

fn agent(id: &str, hostname: &str) -> AgentInfo {
    let id = AgentID { value: id.into(), ..Default::default() };
    AgentInfo { id: id.into(), hostname: hostname.into(), port: Some(5051), ..Default::default() }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let id = || (0..6u8).prop_map(|n| AgentId::new(format!("m-S{n}")));
    let info = || (0..6u8, 0..3u8).prop_map(|(n, host)| agent(&format!("m-S{n}"), &format!("host{host}")));
    let at = || (0..u64::MAX).prop_map(Wall);
    let ids = || proptest::collection::vec(id(), 0..4);
    let weights = proptest::collection::btree_map("[a-c](/[a-c])?", 0.001..100.0, 0..3);
    prop_oneof![
        Just(Operation::Initialize { cluster_id: "c".into() }),
        info().prop_map(Operation::AdmitAgent),
        info().prop_map(Operation::UpdateAgent),
        (id(), at()).prop_map(|(id, at)| Operation::MarkUnreachable { id, at }),
        info().prop_map(Operation::MarkReachable),
        id().prop_map(|id| Operation::RemoveAgent { id }),
        (id(), at()).prop_map(|(id, at)| Operation::MarkGone { id, at }),
        (ids(), ids()).prop_map(|(unreachable, gone)| Operation::Prune { unreachable, gone }),
        weights.prop_map(Operation::SetWeights),
    ]
}

proptest! {
    #[test]
    fn what_is_applied_is_what_is_loaded(operations in proptest::collection::vec(any_operation(), 0..40)) {
        let (mut registry, mut store) = (Registry::default(), Store::new());
        for operation in &operations {
            registry.apply(operation);
            write(&mut store, operation);
            prop_assert_eq!(load(&store), Ok(registry.clone()), "after {}", operation);
        }
        // Said again, an operation changes nothing.
        if let Some(last) = operations.last() {
            let before = registry.clone();
            registry.apply(last);
            prop_assert_eq!(registry, before);
        }
    }
}

fn story() -> Vec<Operation> {
    vec![
        Operation::Initialize { cluster_id: "0f6e".into() },
        Operation::AdmitAgent(agent("m-S0", "a.example")),
        Operation::AdmitAgent(agent("m-S1", "b.example")),
        Operation::AdmitAgent(agent("m-S2", "c.example")),
        Operation::MarkUnreachable { id: AgentId::new("m-S1"), at: Wall(1_500_000_000) },
        Operation::MarkGone { id: AgentId::new("m-S2"), at: Wall(2_000_000_000) },
        Operation::SetWeights([("eng/web".into(), 2.5)].into()),
    ]
}

/// The registry as schema version 1 wrote it. Never edit: a new form of the store brings a fixture of its own.
const VERSION_1: &[(&str, &str)] = &[
    ("agent/m-S0", "0a160a09612e6578616d706c6532060a046d2d533040bb27"),
    ("cluster", "0a0430663665"),
    ("gone/m-S2", "0880a8d6b907"),
    ("schema", "0801"),
    ("unreachable/m-S1", "0880dea0cb05"),
    ("weight/eng/web", "090000000000000440"),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn a_registry_of_version_1_is_read() {
    let store: Store = VERSION_1.iter().map(|(key, hex)| (key.to_string(), bytes(hex))).collect();
    let mut expected = Registry::default();
    story().iter().for_each(|operation| expected.apply(operation));
    assert_eq!(load(&store), Ok(expected));
}

#[test]
fn version_1_is_what_is_written() {
    let mut store = Store::new();
    story().iter().for_each(|operation| write(&mut store, operation));
    let hex = |value: &Vec<u8>| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let written: Vec<(String, String)> = store.iter().map(|(key, value)| (key.clone(), hex(value))).collect();
    let fixture: Vec<(String, String)> =
        VERSION_1.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    assert_eq!(written, fixture);
}

#[test]
fn what_cannot_be_understood_is_refused() {
    let refused =
        |key: &str, hex: &str| load(&Store::from([(key.into(), bytes(hex))])).unwrap_err().to_string();
    let agent_of_another_key = VERSION_1[0].1;
    let answers = [
        refused("schema", "0802"),
        refused("schema", ""),
        refused("quota/eng", ""),
        refused("agent/", ""),
        refused("agent/m-S7", agent_of_another_key),
        refused("agent/m-S7", ""),
        refused("weight/eng", "09000000000000f0bf"),
        refused("gone/m-S1", "08"),
    ];
    expect![[r#"
        the registry was written by a newer version (schema 2; this one reads up to 1)
        the registry's value of 'schema' is damaged: it has no version
        the registry has a key 'quota/eng' that this version does not know; it may be from a newer one
        the registry has a key 'agent/' that this version does not know; it may be from a newer one
        the registry's value of 'agent/m-S7' is damaged: it describes agent 'm-S0'
        the registry's value of 'agent/m-S7' is damaged: it describes no agent
        the registry's value of 'weight/eng' is damaged: -1 is no weight
        the registry's value of 'gone/m-S1' is damaged: unexpected end of buffer"#]]
    .assert_eq(&answers.join("\n"));
}

#[test]
fn operations_tell_their_story() {
    let mut told = story();
    told.push(Operation::MarkReachable(agent("m-S1", "b.example")));
    told.push(Operation::Prune { unreachable: vec![], gone: vec![AgentId::new("m-S2")] });
    told.push(Operation::RemoveAgent { id: AgentId::new("m-S0") });
    expect![[r#"
        initialize cluster 0f6e
        admit agent m-S0 at a.example
        admit agent m-S1 at b.example
        admit agent m-S2 at c.example
        mark unreachable agent m-S1 since 1.500
        mark gone agent m-S2 since 2.000
        set weights eng/web=2.5
        mark reachable agent m-S1 at b.example
        prune 0 unreachable and 1 gone agents
        remove agent m-S0
    "#]]
    .assert_eq(&told.iter().map(|op| format!("{op}\n")).collect::<String>());
}
