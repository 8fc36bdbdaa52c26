//! Specs of the service: commands are scripts (see [`crate::script`]), so that tasks run, finish and fail as they say.

use std::collections::BTreeMap;

use tepui_service::spec::ServiceSpec;

use crate::chance::{Rng, pick};

/// Runs until it is killed.
pub(super) const STAY: &str = "0:0:0:stay";
const FINISH: &str = "0:300000000:0:finish";
const FAIL: &str = "0:2000000000:0:fail";

const SPEC: &str = "
name: service
scheduler: {user: nobody}
pods:
  a:
    count: {{A}}
    allow-decommission: true
    resource-sets:
      shared: {cpus: 0.2, memory: 32, volume: {path: data, type: ROOT, size: 8}}
    tasks:
      init: {goal: ONCE, cmd: '{{FINISH}}', resource-set: shared}
      main: {goal: RUNNING, cmd: '{{MAIN}}', resource-set: shared, env: {VERSION: '{{VERSION}}'}}
      side: {goal: RUNNING, cmd: '{{SIDE}}', cpus: {{CPUS}}, memory: 16, essential: false}
  b:
    count: {{B}}
    allow-decommission: true
    placement: 'hostname:MAX_PER:2'
    tasks:
      main: {goal: RUNNING, cmd: '{{STAY}}', cpus: 0.1, memory: 16}
      job: {goal: FINISH, cmd: '{{JOB}}', cpus: 0.1, memory: 16, env: {VERSION: '{{VERSION}}'}}
plans:
  deploy:
    strategy: parallel
    phases:
      a: {pod: a, strategy: {{STRATEGY}}, steps: [{default: [[init], [main, side]]}]}
      b: {pod: b, strategy: serial, steps: [{default: [[main, job]]}]}
";

/// A spec in which tasks may fail.
pub(super) fn draw(rng: &mut Rng) -> ServiceSpec {
    let mut one = |of: &[&str]| pick(rng, of).copied().unwrap_or_default().to_owned();
    parse([
        ("A", one(&["1", "0", "2"])),
        ("B", one(&["1", "2"])),
        ("CPUS", one(&["0.1", "0.2"])),
        ("VERSION", one(&["1", "2", "3"])),
        ("STRATEGY", one(&["serial", "parallel"])),
        ("MAIN", one(&[STAY, STAY, FAIL])),
        ("SIDE", one(&[STAY, FAIL])),
        ("JOB", one(&[FINISH, FINISH, FAIL])),
    ])
}

/// One that an operator repaired, small enough for any cluster.
pub(super) fn sound() -> ServiceSpec {
    let given = [
        ("A", "1"),
        ("B", "1"),
        ("CPUS", "0.1"),
        ("VERSION", "9"),
        ("STRATEGY", "serial"),
        ("MAIN", STAY),
        ("SIDE", STAY),
        ("JOB", FINISH),
    ];
    parse(given.map(|(name, value)| (name, value.to_owned())))
}

fn parse(given: impl IntoIterator<Item = (&'static str, String)>) -> ServiceSpec {
    let fixed = [("STAY", STAY.to_owned()), ("FINISH", FINISH.to_owned())];
    let env: BTreeMap<String, String> =
        given.into_iter().chain(fixed).map(|(name, value)| (name.to_owned(), value)).collect();
    let template = |name: &str| Err(format!("there is no template {name}"));
    let input = tepui_service::Input { file: "svc.yml", text: SPEC, env: &env, template: &template };
    tepui_service::parse(input).unwrap_or_else(|report| panic!("{report}")).0
}
