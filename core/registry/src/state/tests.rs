//! Applied operations, the stored format, and fixtures of older formats.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use expect_test::expect;
use proptest::prelude::*;
use tepui_fsm::{Durable, Wall};
use tepui_proto::mesos::v1::machine_info::Mode;
use tepui_proto::mesos::v1::maintenance::{Schedule, Window};
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_proto::mesos::v1::{
    AgentID, AgentInfo, DrainConfig, DrainInfo, DrainState, MachineID, MachineInfo, value,
};
use tepui_types::{AgentId, FrameworkId};

use crate::{Deactivation, LoadError, Machine, Operation, Registry};

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

fn quota(role: &str, cpus: f64) -> QuotaConfig {
    let cpus = value::Scalar { value: cpus, ..Default::default() };
    QuotaConfig { role: role.into(), limits: [("cpus".into(), cpus)].into(), ..Default::default() }
}

fn machine(hostname: &str, mode: Mode) -> (Machine, Option<MachineInfo>) {
    let id = MachineID { hostname: Some(hostname.into()), ip: Some("10.0.0.1".into()), ..Default::default() };
    let info = MachineInfo { id: id.clone().into(), mode: Some(mode), ..Default::default() };
    (Machine::from(&id), Some(info))
}

fn schedule(hostname: &str) -> Schedule {
    let id = MachineID { hostname: Some(hostname.into()), ip: Some("10.0.0.1".into()), ..Default::default() };
    Schedule { windows: vec![Window { machine_ids: vec![id], ..Default::default() }], ..Default::default() }
}

fn draining(state: DrainState) -> Deactivation {
    let config = DrainConfig { mark_gone: Some(true), ..Default::default() };
    let drain = DrainInfo { state, config: config.into(), ..Default::default() };
    Deactivation { drain: Some(drain), since: Some(Wall(3_000_000_000)) }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let id = || (0..6u8).prop_map(|n| AgentId::new(format!("m-S{n}")));
    let info = || (0..6u8, 0..3u8).prop_map(|(n, host)| agent(&format!("m-S{n}"), &format!("host{host}")));
    let at = || (0..u64::MAX).prop_map(Wall);
    let ids = || proptest::collection::vec(id(), 0..4);
    let weight = prop_oneof![0.001..100.0, Just(1.0)];
    let weights = proptest::collection::btree_map("[a-c](/[a-c])?", weight, 0..3);
    let config = |role: &str| proptest::option::of(Just(quota(role, 2.5)));
    let quotas = (config("a"), config("b"), any::<bool>()).prop_map(|(a, b, any)| Operation::SetQuotas {
        configs: [("a".into(), a), ("b".into(), b)].into(),
        any,
    });
    let machines = (0..3u8, any::<bool>(), any::<bool>()).prop_map(|(n, forget, clear)| {
        let name = format!("H{n}");
        let (machine, info) = machine(&name, Mode::DRAINING);
        Operation::SetSchedule {
            schedule: if clear { Schedule::default() } else { schedule(&name) },
            machines: [(machine, info.filter(|_| !forget))].into(),
        }
    });
    let deactivation = prop_oneof![
        Just(Deactivation::default()),
        Just(draining(DrainState::DRAINING)),
        Just(draining(DrainState::DRAINED))
    ];
    prop_oneof![
        Just(Operation::Initialize { cluster_id: "c".into() }),
        info().prop_map(Operation::AdmitAgent),
        info().prop_map(Operation::UpdateAgent),
        (id(), at()).prop_map(|(id, at)| {
            let hostname = format!("host-of-{id}");
            Operation::MarkUnreachable { id, at, hostname }
        }),
        info().prop_map(Operation::MarkReachable),
        id().prop_map(|id| Operation::RemoveAgent { id }),
        (id(), at()).prop_map(|(id, at)| Operation::MarkGone { id, at }),
        (ids(), ids()).prop_map(|(unreachable, gone)| Operation::Prune { unreachable, gone }),
        weights.prop_map(Operation::SetWeights),
        Just(Operation::Upgrade),
        quotas,
        machines,
        (id(), deactivation).prop_map(|(id, deactivation)| Operation::Deactivate { id, deactivation }),
        (id(), any::<bool>()).prop_map(|(id, any)| Operation::Reactivate { id, any }),
        Just(Operation::RemoveFramework { id: FrameworkId::new("F") }),
    ]
}

proptest! {
    #[test]
    fn applied_operations_equal_the_loaded_registry(operations in proptest::collection::vec(any_operation(), 0..40)) {
        let (mut registry, mut store) = (Registry::default(), Store::new());
        for operation in &operations {
            registry.apply(operation);
            write(&mut store, operation);
            prop_assert_eq!(load(&store), Ok(registry.clone()), "after {}", operation);
        }
        // Operations are idempotent.
        if let Some(last) = operations.last() {
            let before = registry.clone();
            registry.apply(last);
            prop_assert_eq!(registry, before);
        }
    }
}

/// The operations of schema version 1.
fn operations_of_version_1() -> Vec<Operation> {
    vec![
        Operation::Initialize { cluster_id: "0f6e".into() },
        Operation::AdmitAgent(agent("m-S0", "a.example")),
        Operation::AdmitAgent(agent("m-S1", "b.example")),
        Operation::AdmitAgent(agent("m-S2", "c.example")),
        Operation::MarkUnreachable {
            id: AgentId::new("m-S1"),
            at: Wall(1_500_000_000),
            hostname: "b.example".into(),
        },
        Operation::MarkGone { id: AgentId::new("m-S2"), at: Wall(2_000_000_000) },
        Operation::SetWeights([("eng/web".into(), 2.5)].into()),
    ]
}

fn operations_of_version_2() -> Vec<Operation> {
    let mut operations_of_version_1 = operations_of_version_1();
    operations_of_version_1.extend([
        Operation::SetQuotas { configs: [("eng".into(), Some(quota("eng", 2.5)))].into(), any: true },
        Operation::SetSchedule { schedule: schedule("H1"), machines: [machine("H1", Mode::DRAINING)].into() },
        Operation::Deactivate { id: AgentId::new("m-S0"), deactivation: draining(DrainState::DRAINING) },
        Operation::Deactivate { id: AgentId::new("m-S1"), deactivation: Deactivation::default() },
    ]);
    operations_of_version_1
}

/// The registry as written by schema version 1, which also stored a weight of 1.0. Never edit: a new format gets a new
/// fixture.
const VERSION_1: &[(&str, &str)] = &[
    ("agent/m-S0", "0a160a09612e6578616d706c6532060a046d2d533040bb27"),
    ("cluster", "0a0430663665"),
    ("gone/m-S2", "0880a8d6b907"),
    ("schema", "0801"),
    ("unreachable/m-S1", "0880dea0cb05"),
    ("weight/eng", "09000000000000f03f"),
    ("weight/eng/web", "090000000000000440"),
];

/// The registry as schema version 2 wrote it before unreachable agents had hostnames. Never edit.
const VERSION_2: &[(&str, &str)] = &[
    ("agent/m-S0", "0a160a09612e6578616d706c6532060a046d2d533040bb27"),
    ("capability/AGENT_DRAINING", ""),
    ("capability/QUOTA_V2", ""),
    ("cluster", "0a0430663665"),
    ("deactivated/m-S0", "0a060801120210011080bcc1960b"),
    ("deactivated/m-S1", ""),
    ("gone/m-S2", "0880a8d6b907"),
    ("machine/h1@10.0.0.1", "0a120a0e0a024831120831302e302e302e311002"),
    ("quota/eng", "0a180a03656e671a110a04637075731209090000000000000440"),
    ("schedule", "0a120a100a0e0a024831120831302e302e302e31"),
    ("schema", "0802"),
    ("unreachable/m-S1", "0880dea0cb05"),
    ("weight/eng/web", "090000000000000440"),
];

/// An unreachable agent with its hostname; everything else is as in [`VERSION_2`]. Never edit.
const UNREACHABLE_WITH_HOSTNAME: (&str, &str) = ("unreachable/m-S1", "0880dea0cb051209622e6578616d706c65");

/// As read by versions without hostnames of unreachable agents.
fn without_hostnames(registry: Registry) -> Registry {
    Registry { unreachable_hostnames: BTreeMap::new(), ..registry }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn store(fixture: &[(&str, &str)]) -> Store {
    fixture.iter().map(|(key, hex)| (key.to_string(), bytes(hex))).collect()
}

fn applied(operations_of_version_1: &[Operation]) -> Registry {
    let mut registry = Registry::default();
    operations_of_version_1.iter().for_each(|operation| registry.apply(operation));
    registry
}

#[test]
fn registry_version_1_is_readable() {
    let expected =
        Registry { schema_version: Some(1), ..without_hostnames(applied(&operations_of_version_1())) };
    assert_eq!(load(&store(VERSION_1)), Ok(expected.clone()));
    assert!(expected.is_old());
    // The first master that opens it upgrades the version.
    let mut upgraded = store(VERSION_1);
    write(&mut upgraded, &Operation::Upgrade);
    assert_eq!(load(&upgraded), Ok(without_hostnames(applied(&operations_of_version_1()))));
}

#[test]
fn registry_version_2_is_readable() {
    assert_eq!(load(&store(VERSION_2)), Ok(without_hostnames(applied(&operations_of_version_2()))));
    let mut with_hostname = store(VERSION_2);
    with_hostname.extend(store(&[UNREACHABLE_WITH_HOSTNAME]));
    assert_eq!(load(&with_hostname), Ok(applied(&operations_of_version_2())));
}

#[test]
fn registry_is_written_as_version_2() {
    let mut store = Store::new();
    operations_of_version_2().iter().for_each(|operation| write(&mut store, operation));
    let hex = |value: &Vec<u8>| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let written: Vec<(String, String)> = store.iter().map(|(key, value)| (key.clone(), hex(value))).collect();
    let (changed, _) = UNREACHABLE_WITH_HOSTNAME;
    let newest =
        VERSION_2.iter().map(|entry| if entry.0 == changed { &UNREACHABLE_WITH_HOSTNAME } else { entry });
    let fixture = newest.map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(written, fixture.collect::<Vec<_>>());
}

#[test]
fn minimum_capabilities_follow_the_registry() {
    let mut registry = Registry::default();
    let needs =
        |registry: &Registry| registry.minimum_capabilities.iter().cloned().collect::<Vec<_>>().join(" ");
    let set = |registry: &mut Registry, role: &str, config: Option<QuotaConfig>| {
        let operation = registry.set_quotas([(role.into(), config)].into());
        registry.apply(&operation);
    };
    set(&mut registry, "a", Some(quota("a", 1.0)));
    set(&mut registry, "b", Some(quota("b", 1.0)));
    set(&mut registry, "a", None);
    assert_eq!(needs(&registry), "QUOTA_V2");
    set(&mut registry, "b", None);
    assert_eq!(needs(&registry), "");
    let ids = ["m-S0", "m-S1"].map(AgentId::new);
    for id in &ids {
        registry.apply(&Operation::Deactivate { id: id.clone(), deactivation: Deactivation::default() });
    }
    registry.apply(&registry.clone().reactivate(&ids[0]));
    assert_eq!(needs(&registry), "AGENT_DRAINING");
    registry.apply(&registry.clone().reactivate(&ids[1]));
    assert_eq!(needs(&registry), "");
}

#[test]
fn unknown_registry_contents_are_rejected() {
    let refused =
        |key: &str, hex: &str| load(&Store::from([(key.into(), bytes(hex))])).unwrap_err().to_string();
    let agent_of_another_key = VERSION_1[0].1;
    let answers = [
        refused("schema", "0803"),
        refused("schema", ""),
        refused("flavour/eng", ""),
        refused("quota/eng", ""),
        refused("machine/h1", ""),
        refused("machine/h1@10.0.0.1", ""),
        refused("capability/TIME_TRAVEL", ""),
        refused("agent/", ""),
        refused("agent/m-S7", agent_of_another_key),
        refused("agent/m-S7", ""),
        refused("weight/eng", "09000000000000f0bf"),
        refused("gone/m-S1", "08"),
    ];
    expect![[r#"
        the registry was written by a newer version (schema 3; this one reads up to 2)
        the registry's value of 'schema' is damaged: it has no version
        unknown key 'flavour/eng' in the registry; it may be from a newer version
        the registry's value of 'quota/eng' is damaged: it is not a quota
        unknown key 'machine/h1' in the registry; it may be from a newer version
        the registry's value of 'machine/h1@10.0.0.1' is damaged: it describes no machine
        the registry needs a master with the capability TIME_TRAVEL, which this one has not
        unknown key 'agent/' in the registry; it may be from a newer version
        the registry's value of 'agent/m-S7' is damaged: it describes agent 'm-S0'
        the registry's value of 'agent/m-S7' is damaged: it describes no agent
        the registry's value of 'weight/eng' is damaged: -1 is not a valid weight
        the registry's value of 'gone/m-S1' is damaged: unexpected end of buffer"#]]
    .assert_eq(&answers.join("\n"));
}

#[test]
fn operations_have_a_one_line_display() {
    let mut applied = operations_of_version_2();
    applied.push(Operation::Deactivate {
        id: AgentId::new("m-S0"),
        deactivation: draining(DrainState::DRAINED),
    });
    applied.push(Operation::Reactivate { id: AgentId::new("m-S0"), any: true });
    applied.push(Operation::SetSchedule {
        schedule: Schedule::default(),
        machines: [(Machine::new("H1", "10.0.0.1"), None)].into(),
    });
    applied.push(Operation::Upgrade);
    applied.push(Operation::MarkReachable(agent("m-S1", "b.example")));
    applied.push(Operation::Prune { unreachable: vec![], gone: vec![AgentId::new("m-S2")] });
    applied.push(Operation::RemoveAgent { id: AgentId::new("m-S0") });
    expect![[r#"
        initialize cluster 0f6e
        admit agent m-S0 at a.example
        admit agent m-S1 at b.example
        admit agent m-S2 at c.example
        mark unreachable agent m-S1 since 1.500
        mark gone agent m-S2 since 2.000
        set weights eng/web=2.5
        set quota of eng
        schedule maintenance in 1 windows, h1@10.0.0.1 DRAINING
        drain agent m-S0
        deactivate agent m-S1
        mark drained agent m-S0
        reactivate agent m-S0
        schedule maintenance in 0 windows, h1@10.0.0.1 UP
        upgrade to schema 2
        mark reachable agent m-S1 at b.example
        prune 0 unreachable and 1 gone agents
        remove agent m-S0
    "#]]
    .assert_eq(&applied.iter().map(|op| format!("{op}\n")).collect::<String>());
}
