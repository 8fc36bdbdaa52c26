//! Specs, good and bad.

use std::collections::BTreeMap;

use super::*;
use crate::spec::{Constraint, Goal, IpcMode, Limit, Limits, Seccomp, Sharing, VolumeKind, VolumeMode};

const MINIMAL: &str = "name: db\npods:\n  node:\n    count: 2\n    tasks:\n      server:\n        goal: RUNNING\n        cmd: ./run\n        cpus: 0.5\n        memory: 64\n";

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn read(text: &str, env: &BTreeMap<String, String>) -> Result<(ServiceSpec, Report), Report> {
    let template = |path: &str| match path {
        "good.conf" => Ok("port={{PORT}}".to_owned()),
        "open.conf" => Ok("\n{{#PORT}}".to_owned()),
        "empty.conf" => Ok(String::new()),
        _ => Err("no such file".to_owned()),
    };
    parse(Input { file: "svc.yml", text, env, template: &template })
}

fn good(text: &str) -> ServiceSpec {
    let (spec, report) = read(text, &BTreeMap::new()).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(report.problems, [], "{report}");
    spec
}

/// The minimal spec with more lines in its task, its pod and at the top.
fn with(task: &str, pod: &str, top: &str) -> String {
    let indented = |text: &str, blanks: usize| {
        text.lines().map(|line| format!("{}{line}\n", " ".repeat(blanks))).collect::<String>()
    };
    format!("{MINIMAL}{}{}{}", indented(task, 8), indented(pod, 4), indented(top, 0))
}

/// Whether some problem of the spec is at the path and has the text.
#[track_caller]
fn rejects(text: &str, path: &str, message: &str) {
    let report = read(text, &BTreeMap::new()).map(|(_, report)| report).expect_err(text);
    let fits = |problem: &Problem| {
        problem.severity == Severity::Error && problem.path == path && problem.message.contains(message)
    };
    assert!(report.problems.iter().any(fits), "no {path}: {message} for\n{text}\nbut\n{report}");
    assert!(report.problems.iter().all(|problem| problem.line > 0 && problem.column > 0));
}

#[test]
fn defaults_fill_a_minimal_spec() {
    let spec = good(MINIMAL);
    assert_eq!(
        (spec.name.as_str(), spec.principal.as_str(), spec.user.as_str()),
        ("db", "db-principal", "root")
    );
    assert_eq!((spec.zookeeper.as_str(), spec.web_url, spec.replacement), ("master.mesos:2181", None, None));
    assert!(spec.plans.is_empty());
    let pod = &spec.pods[0];
    assert_eq!((pod.count, pod.allow_decommission, pod.pre_reserved_role.as_str()), (2, false, "*"));
    assert_eq!((&pod.seccomp, pod.ipc_mode, pod.placement.as_slice()), (&Seccomp::Default, None, &[][..]));
    let task = &pod.tasks[0];
    assert_eq!((task.goal, task.essential, task.kill_grace_period_secs), (Goal::Running, true, 0));
    let set = pod.resource_set(&task.resource_set).expect("implicit resource set");
    assert_eq!((set.id.as_str(), set.cpus, set.memory_mb), ("server-resource-set", Some(0.5), Some(64)));
}

const FULL: &str = r#"
name: /team/db
web-url: http://db.example.com
scheduler: {principal: "", user: nobody, zookeeper: "zk:2181"}
replacement-failure-policy: {permanent-failure-timeout-secs: 30}
pods:
  node:
    count: "3"
    allow-decommission: yes
    image: example/db:1
    placement: '[["hostname", "UNIQUE"]]'
    uris: ["http://example.com/a%20b.tgz"]
    networks: {dcos: , mesos-bridge: {host-ports: [8080], container-ports: [80], labels: "a:b:c,d:e"}}
    rlimits: {RLIMIT_NOFILE: {soft: 10, hard: 20}, RLIMIT_CORE: {soft: -1, hard: -1}, RLIMIT_AS: }
    volume: {path: shared, type: ROOT, size: 10}
    volumes: {more: {path: more, type: MOUNT, size: 20, profiles: [ssd]}}
    host-volumes: {etc: {host-path: /etc, container-path: host/etc, mode: RO}}
    secrets: {a: {secret: path/a}, b: {secret: path/b, env-key: B}}
    pre-reserved-role: fast
    share-pid-namespace: true
    seccomp-unconfined: false
    seccomp-profile-name: strict.json
    ipc-mode: PRIVATE
    shm-size: 64
    resource-sets:
      shared:
        cpus: 1
        gpus: 1
        memory: 512
        ports:
          client: {port: 9042, advertise: true, env-key: PORT_CLIENT, vip: {port: 9042, prefix: node}}
          any: {port: 0, ranges: [{begin: 100, end: 200}, {begin: 1000}]}
        volume: {path: data, type: ROOT, size: 100}
        resource-limits: {cpus: unlimited, memory: "1024"}
    tasks:
      init: {goal: once, cmd: ./init, resource-set: shared}
      server:
        goal: RUNNING
        essential: false
        cmd: ./bootstrap && ./run
        resource-set: shared
        env: {A: 1, B: }
        labels: "a:1,b:x:y"
        configs: {main: {template: good.conf, dest: conf/main}}
        health-check: {cmd: c, interval: 1, grace-period: 2, max-consecutive-failures: 3, delay: 4, timeout: 5}
        readiness-check: {cmd: r, interval: 6, timeout: 7}
        discovery: {prefix: node}
        kill-grace-period: 3600
        transport-encryption: []
        ipc-mode: SHARE_PARENT
plans:
  deploy:
    strategy: parallel
    phases:
      node:
        pod: node
        strategy: parallel-canary
        steps: [{0: [[init], [server]]}, {default: [[server]]}]
"#;

#[test]
fn every_key_of_a_full_spec_is_read() {
    let (spec, report) = read(FULL, &BTreeMap::new()).unwrap_or_else(|report| panic!("{report}"));
    let warnings: Vec<&str> = report.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(warnings, Vec::<&str>::new(), "{report}");
    assert_eq!((spec.principal.as_str(), spec.user.as_str()), ("/team/db-principal", "nobody"));
    let policy = spec.replacement.expect("policy");
    assert_eq!((policy.permanent_failure_timeout_secs, policy.min_replace_delay_secs), (30, 600));
    let pod = &spec.pods[0];
    assert_eq!((pod.count, pod.allow_decommission, pod.shm_size_mb), (3, true, Some(64)));
    assert_eq!(pod.placement, Constraint::parse("hostname:UNIQUE").expect("constraint"));
    assert_eq!(pod.networks[1].port_mappings, [(8080, 80)]);
    assert_eq!(pod.networks[1].labels, [("a".into(), "b:c".into()), ("d".into(), "e".into())]);
    let rlimits: Vec<_> = pod.rlimits.iter().map(|rlimit| rlimit.values).collect();
    assert_eq!(rlimits, [Some((10, 20)), None, None]);
    assert_eq!(pod.volumes[1].kind, VolumeKind::Mount { profiles: vec!["ssd".into()] });
    assert_eq!(pod.host_volumes[0].mode, VolumeMode::ReadOnly);
    assert_eq!((pod.secrets[0].file.as_deref(), pod.secrets[1].file.as_deref()), (Some("path/a"), None));
    assert_eq!(
        (&pod.seccomp, pod.ipc_mode),
        (&Seccomp::Profile("strict.json".into()), Some(IpcMode::Private))
    );
    let set = pod.resource_set("shared").expect("resource set");
    assert_eq!(set.ports[1].ranges, [(100, 200), (1000, 65535)]);
    assert_eq!(set.ports[0].vip.as_ref().map(|vip| (vip.prefix.as_str(), vip.port)), Some(("node", 9042)));
    assert_eq!(set.limits, Limits { cpus: Some(Limit::Unlimited), memory_mb: Some(Limit::Amount(1024.0)) });
    let server = pod.task("server").expect("task");
    assert_eq!(server.env, env(&[("A", "1"), ("B", "")]));
    assert_eq!(server.configs[0].content, "port={{PORT}}");
    assert_eq!(server.readiness_check.as_ref().map(|check| check.delay_secs), Some(0));
    let phase = &spec.plans[0].phases[0];
    assert_eq!((phase.parallel, phase.canary), (true, true));
    let steps = phase.steps.as_ref().expect("steps");
    assert_eq!(steps.groups(0).map(Vec::len), Some(2));
    assert_eq!(steps.groups(2).map(Vec::len), Some(1));
}

#[test]
fn configs_without_bootstrap_and_empty_uris_are_warned_of() {
    let text = FULL.replace("./bootstrap && ./run", "./run").replace("a%20b.tgz\"]", "a%20b.tgz\", null]");
    let (spec, report) = read(&text, &BTreeMap::new()).expect("valid");
    assert_eq!(spec.pods[0].uris.len(), 1);
    let report = report.to_string();
    for expected in [
        "warning: pods.node.uris[1]: is empty and has no effect",
        "warning: pods.node.tasks.server.configs: are rendered by `./bootstrap`, which `cmd` does not run",
    ] {
        assert!(report.contains(expected), "{report}");
    }
}

#[test]
fn values_that_are_not_allowed_are_rejected_in_tasks() {
    let task = "pods.node.tasks.server";
    let cases = [
        ("gaol: 1", "gaol", "unknown key; the keys here are cmd, configs"),
        ("gpus: 0", "gpus", "a number from 0.001"),
        ("gpus: 0.0004", "gpus", "a number from 0.001"),
        ("gpus: 1e13", "gpus", "a number from 0.001 to 1099511627776"),
        ("kill-grace-period: 3601", "kill-grace-period", "from 0 to 3600"),
        ("kill-grace-period: -1", "kill-grace-period", "from 0 to 3600"),
        ("essential: maybe", "essential", "no boolean"),
        ("labels: \"   \"", "labels", "`key:value,key:value` is expected"),
        ("labels: a", "labels", "`key:value,key:value` is expected"),
        ("resource-limits: {cpus: 0.25}", "resource-limits.cpus", "below the request 0.5"),
        ("resource-limits: {mem: 32}", "resource-limits.mem", "below the request 64"),
        ("resource-limits: {cpus: many}", "resource-limits.cpus", "`unlimited` is expected"),
        ("ports: {a: {port: 80}, b: {port: 80}}", "ports.b", "duplicate port value 80"),
        ("ports: {a: {port: 70000}}", "ports.a.port", "from 0 to 65535"),
        ("ports: {a: {}}", "ports.a", "`port` is required"),
        (
            "ports: {a: {port: 1, vip: {port: 1, prefix: b}}, b: {port: 2}}",
            "ports.a.vip.prefix",
            "another port",
        ),
        ("ports: {a: {port: 0, ranges: [{begin: 9, end: 8}]}}", "ports.a.ranges[0]", "begin 9 exceeds end 8"),
        ("ports: {a: {port: 7, ranges: [{begin: 9}]}}", "ports.a", "dynamic ports"),
        ("volume: {path: a/b, type: ROOT, size: 1}", "volume.path", "letters, digits"),
        ("volume: {path: a, type: DISK, size: 1}", "volume.type", "one of ROOT, MOUNT"),
        ("volume: {path: a, type: ROOT, size: 0}", "volume.size", "from 1 to"),
        ("volume: {path: a, type: ROOT, size: 1, profiles: [a]}", "volume.profiles", "MOUNT"),
        ("volume: {path: a, type: MOUNT, size: 1, profiles: [a, a]}", "volume.profiles[1]", "twice"),
        ("volume: {path: a, type: ROOT, size: 1}\nvolumes: {}", "volumes", "exclude each other"),
        (
            "volumes: {a: {path: x, type: ROOT, size: 1}, b: {path: x, type: ROOT, size: 1}}",
            "volumes.b",
            "path \"x\"",
        ),
        ("resource-set: none", "resource-set", "no resource set \"none\""),
        (
            "health-check: {cmd: c, interval: 1, delay: 1, timeout: 1}",
            "health-check",
            "`grace-period` is required",
        ),
        ("readiness-check: {cmd: '', interval: 1, timeout: x}", "readiness-check.timeout", "(seconds)"),
        ("discovery: {visibility: ALL}", "discovery.visibility", "FRAMEWORK, CLUSTER, EXTERNAL"),
        (
            "transport-encryption: [{name: a, type: TLS}]",
            "transport-encryption[0]",
            "no certificates are issued",
        ),
        ("ipc-mode: SHARE_PARENT\nshm-size: 1", "", "`shm-size` excludes"),
        (
            "configs: {a: {template: gone.conf, dest: d}}",
            "configs.a.template",
            "cannot read template \"gone.conf\": no such file",
        ),
        ("configs: {a: {template: ../x, dest: d}}", "configs.a.template", "leads out of the directory"),
        ("configs: {a: {template: empty.conf, dest: d}}", "configs.a.template", "is empty"),
        (
            "configs: {a: {template: open.conf, dest: d}}",
            "configs.a.template",
            "line 2: section {{#PORT}} is not closed",
        ),
        (
            "configs: {a: {template: good.conf, dest: d}, b: {template: good.conf, dest: d}}",
            "configs.b.dest",
            "dest \"d\"",
        ),
    ];
    for (lines, path, message) in cases {
        let path = if path.is_empty() { task.to_owned() } else { format!("{task}.{path}") };
        rejects(&with(lines, "", ""), &path, message);
    }
}

#[test]
fn amounts_are_the_same_in_records() {
    let spec = good(
        &MINIMAL
            .replace("cpus: 0.5", "cpus: 0.30000000000000004\n        resource-limits: {memory: 1023.4567}"),
    );
    let set = &spec.pods[0].resource_sets[0];
    assert_eq!((set.cpus, set.limits.memory_mb), (Some(0.3), Some(Limit::Amount(1023.457))));
    let record = serde_json::to_string(&spec).expect("a record");
    assert_eq!(serde_json::from_str::<ServiceSpec>(&record).expect("its own record"), spec);
}

#[test]
fn values_that_are_not_allowed_are_rejected_in_pods() {
    let cases = [
        ("image: ''", "image", "is empty"),
        ("placement: 'hostname:UNIQE'", "placement", "unknown operator"),
        ("uris: ['a b']", "uris[0]", "no URI"),
        ("networks: {dcos: {host-ports: [1], container-ports: [1]}}", "networks.dcos", "mesos-bridge only"),
        ("networks: {mesos-bridge: {host-ports: [1]}}", "networks.mesos-bridge", "each needs the other"),
        ("networks: {dcos: {labels: '  '}}", "networks.dcos.labels", "label"),
        ("rlimits: {RLIMIT_X: {}}", "rlimits.RLIMIT_X", "unknown rlimit"),
        ("rlimits: {RLIMIT_AS: {soft: 2, hard: 1}}", "rlimits.RLIMIT_AS", "soft 2 exceeds hard 1"),
        ("rlimits: {RLIMIT_AS: {soft: 2}}", "rlimits.RLIMIT_AS", "together"),
        ("rlimits: {RLIMIT_AS: {soft: 2, hard: -1}}", "rlimits.RLIMIT_AS", "both"),
        ("host-volumes: {a: {host-path: etc, container-path: etc}}", "host-volumes.a.host-path", "absolute"),
        (
            "host-volumes: {a: {host-path: /etc, container-path: /etc}}",
            "host-volumes.a.container-path",
            "relative",
        ),
        ("secrets: {a: {file: x}}", "secrets.a", "`secret` is required"),
        ("secrets: {a: {secret: a, file: /x}}", "secrets.a.file", "relative"),
        ("seccomp-unconfined: true\nseccomp-profile-name: x", "seccomp-profile-name", "excludes"),
        ("ipc-mode: SHARE_PARENT", "ipc-mode", "one of PRIVATE"),
        (
            "resource-sets: {a: {volume: {path: x, type: ROOT, size: 1}}}",
            "resource-sets.a",
            "has no resources",
        ),
    ];
    for (lines, path, message) in cases {
        rejects(&with("", lines, ""), &format!("pods.node.{path}"), message);
    }
}

#[test]
fn external_volumes_have_the_proposed_and_the_shipped_form() {
    let proposed = "external-volumes:\n  v: {type: DOCKER, driver: PWX, size: 2048, container-path: data, volume-name: vol, volume-sharing: POD_SHARED, volume-mode: RO}";
    let volume = good(&with("", proposed, "")).pods[0].external_volumes[0].clone();
    assert_eq!(
        (volume.plugin.as_str(), volume.mode, volume.sharing),
        ("pxd", VolumeMode::ReadOnly, Sharing::PodShared)
    );
    assert_eq!(volume.driver_options(), env(&[("nodes", "LocalNode"), ("shared", "true"), ("size", "2")]));
    let shipped = "external-volumes:\n  v: {type: DOCKER, driver-name: pxd, container-path: data, driver-options: 'shared=true;size=10;label=a=b;'}";
    let volume = good(&with("", shipped, "")).pods[0].external_volumes[0].clone();
    assert_eq!(
        (volume.sharing, volume.mode, volume.volume_name.clone()),
        (Sharing::PodShared, VolumeMode::ReadWrite, None)
    );
    assert_eq!(volume.options, env(&[("label", "a=b"), ("shared", "true"), ("size", "10")]));
    let mapping = "external-volumes:\n  v: {type: DOCKER, driver: btrfs, container-path: /data, driver-options: {a: 'x;y'}}";
    let volume = good(&with("", mapping, "")).pods[0].external_volumes[0].clone();
    assert_eq!((volume.plugin.as_str(), volume.options["a"].as_str()), ("btrfs", "x;y"));
}

#[test]
fn external_volumes_with_bad_values_are_rejected() {
    let base = "type: DOCKER, driver: PWX, container-path: data";
    let sized = "type: DOCKER, driver: PWX, size: 10, container-path: data";
    let cases = [
        ("type: CSI, driver: PWX, container-path: data".to_owned(), ".type", "one of DOCKER"),
        ("type: DOCKER, container-path: data".to_owned(), "", "`driver` is required"),
        ("type: DOCKER, driver: PWX".to_owned(), "", "`container-path` is required"),
        ("type: DOCKER, driver: PWX, container-path: a/../b".to_owned(), ".container-path", "is not allowed"),
        (
            "type: DOCKER, driver: btrfs, size: 10, container-path: d".to_owned(),
            ".size",
            "unit of driver \"btrfs\"",
        ),
        (format!("{sized}, driver-name: pxd"), ".driver-name", "exclude each other"),
        (format!("{base}, size: 0"), ".size", "(MB)"),
        (format!("{base}, size: 10, driver-options: size=1"), ".size", "`driver-options` too"),
        (format!("{sized}, driver-options: 'a'"), ".driver-options", "option \"a\" is not allowed"),
        (format!("{sized}, driver-options: ';a=b'"), ".driver-options", "option \"\" is not allowed"),
        (format!("{sized}, driver-options: 'a=b;;c=d'"), ".driver-options", "option \"\" is not allowed"),
        (format!("{sized}, driver-options: 'a='"), ".driver-options", "has no value"),
        (format!("{sized}, driver-options: 'a=b;a=c'"), ".driver-options", "given twice"),
        (format!("{sized}, driver-options: 'name=x'"), ".driver-options", "give `volume-name`"),
        (format!("{sized}, volume-name: 'size=1,name=x'"), ".volume-name", "options in `driver-options`"),
        (format!("{sized}, volume-name: a__b"), ".volume-name", "stands for a slash"),
        (format!("{sized}, volume-mode: XX"), ".volume-mode", "one of RW, RO"),
        (format!("{sized}, volume-sharing: ALL"), ".volume-sharing", "POD_EXCLUSIVE, POD_SHARED"),
        (format!("{sized}, volume-sharing: POD_EXCLUSIVE, driver-options: shared=true"), "", "contradicts"),
        (format!("{sized}, sharing: x"), ".sharing", "unknown key"),
        (base.to_owned(), "", "`size` is required"),
        (
            format!("{base}, driver-options: size=ten"),
            ".driver-options",
            "`size=ten` is not allowed; a size in GB",
        ),
        (format!("{sized}, driver-options: repl=4"), ".driver-options", "1, 2 or 3 is expected"),
        (format!("{base}, driver-options: size=10foo"), ".driver-options", "`size=10foo` is not allowed"),
        (format!("{sized}, volume-sharing: POD_SHARED, driver-options: sharedv4=false"), "", "contradicts"),
        (format!("{sized}, driver-options: shared=yes"), ".driver-options", "true or false is expected"),
        (format!("{sized}, driver-options: io_priority=fast"), ".driver-options", "high, medium or low"),
        (
            "type: DOCKER, driver-name: rexray, container-path: d, driver-options: size=10G".to_owned(),
            ".driver-options",
            "a whole number of GB is expected",
        ),
    ];
    for (volume, path, message) in cases {
        let spec = with("", &format!("external-volumes: {{v: {{{volume}}}}}"), "");
        rejects(&spec, &format!("pods.node.external-volumes.v{path}"), message);
    }
    let twice =
        format!("external-volumes: {{v: {{{sized}, volume-name: x}}, w: {{{sized}, volume-name: x}}}}");
    rejects(&with("", &twice, ""), "pods.node.external-volumes.w", "duplicate external volume \"pxd:x\"");
    let shared = |key: &str| {
        format!(
            "{key}: {{type: DOCKER, driver: PWX, size: 10, container-path: {key}, volume-name: x, volume-sharing: POD_SHARED}}"
        )
    };
    let both = format!("external-volumes: {{{}, {}}}", shared("v"), shared("w"));
    rejects(
        &with("", &both, ""),
        "pods.node.external-volumes.w",
        "pods.node.external-volumes.v has it already",
    );
    let odd = with("", &format!("external-volumes: {{v: {{{sized}}}}}"), "").replace("name: db", "name: d@b");
    rejects(&odd, "pods.node.external-volumes.v", "the name \"d@b-node\"");
}

#[test]
fn paths_in_containers_have_one_owner_in_a_pod() {
    let external = |key: &str, path: &str| {
        format!(
            "external-volumes: {{{key}: {{type: DOCKER, driver: PWX, size: 10, container-path: {path}}}}}\n"
        )
    };
    let two = |paths: [&str; 2]| {
        let one = |key: &str, path: &str| {
            format!(
                "{key}: {{type: DOCKER, driver: PWX, size: 10, volume-name: {key}, container-path: {path}}}"
            )
        };
        format!("external-volumes: {{{}, {}}}\n", one("v", paths[0]), one("w", paths[1]))
    };
    let host = |path: &str| format!("host-volumes: {{h: {{host-path: /srv, container-path: {path}}}}}\n");
    let cases = [
        ("", two(["data", "./data/"]), "external-volumes.w", "pods.node.external-volumes.v"),
        ("", external("v", "data") + &host("data"), "external-volumes.v", "pods.node.host-volumes.h"),
        (
            "",
            host("a/b") + "secrets: {s: {secret: x, file: a//b}}",
            "secrets.s.file",
            "pods.node.host-volumes.h",
        ),
        ("", host("a/b") + "secrets: {s: {secret: a/b}}", "secrets.s", "pods.node.host-volumes.h"),
        (
            "",
            host("data") + "volume: {path: data, type: ROOT, size: 10}",
            "host-volumes.h",
            "pods.node.volume",
        ),
        (
            "volume: {path: data, type: ROOT, size: 10}",
            external("v", "data"),
            "external-volumes.v",
            "pods.node.tasks.server.volume",
        ),
        (
            "volumes: {a: {path: data, type: ROOT, size: 10}, b: {path: data, type: ROOT, size: 10}}",
            String::new(),
            "tasks.server.volumes.b",
            "pods.node.tasks.server.volumes.a",
        ),
        (
            "",
            external("v", "/tmp") + "image: x/y",
            "external-volumes.v.container-path",
            "a /tmp of their own",
        ),
        ("", external("v", "."), "external-volumes.v.container-path", "names the whole directory"),
        ("", host("./."), "host-volumes.h.container-path", "names the whole directory"),
    ];
    for (task, pod, path, message) in cases {
        let text = with(task, &pod, "");
        let report = read(&text, &BTreeMap::new()).map(|(_, report)| report).expect_err(&text);
        let is_named = |problem: &Problem| {
            problem.path.starts_with(&format!("pods.node.{path}")) && problem.message.contains(message)
        };
        assert!(report.problems.iter().any(is_named), "no {path}: {message} for\n{text}\nbut\n{report}");
    }
    let sets = "resource-sets:\n  a: {cpus: 1, memory: 64, volume: {path: data, type: ROOT, size: 10}}\n  b: {cpus: 1, memory: 64, volume: {path: data, type: ROOT, size: 10}}";
    good(&with("", sets, ""));
    good(&with("", &external("v", "/tmp"), ""));
}

#[test]
fn legacy_volume_error_shows_the_new_format() {
    let fork = "volume: {path: data, type: DOCKER, docker_volume_driver: pxd, docker_volume_name: vol, docker_driver_options: 'repl=2', size: 100}";
    let shown = "  external-volumes:\n    VOLUME:\n      type: DOCKER\n      driver: PWX\n      size: 100\n      container-path: data\n      driver-options: repl=2\n      volume-name: vol";
    rejects(&with("", fork, ""), "pods.node.volume", shown);
    rejects(&with(fork, "", ""), "pods.node.tasks.server.volume", shown);
}

/// The lines that the error of a fork's volume shows.
fn suggestion(fork: &str) -> (String, String) {
    let text = with("", &format!("volume: {{type: DOCKER, {fork}}}"), "");
    let report = read(&text, &BTreeMap::new()).map(|(_, report)| report).expect_err(&text);
    let message = &report.problems[0].message;
    let (_, shown) = message.split_once("write there\n").expect("a suggestion");
    let (lines, left_out): (Vec<&str>, Vec<&str>) =
        shown.lines().partition(|line| !line.starts_with("  without"));
    (lines.join("\n"), left_out.join("\n"))
}

#[test]
fn suggested_form_of_a_legacy_volume_is_valid() {
    let cases = [
        ("path: data, docker_volume_driver: pxd, size: 100", ""),
        ("path: data, docker_volume_driver: rexray, size: 100, docker_volume_name: v", ""),
        ("path: data, size: 100, docker_driver_options: 'size=10;repl=2'", "size: 100`: is given in"),
        ("path: data, docker_volume_driver: btrfs, size: 100", "size: 100`: the unit of driver"),
        ("path: data, docker_volume_driver: 'a: b', docker_driver_options: 'k=it''s # v'", ""),
        ("path: data, size: 100, docker_volume_name: 'a b'", "volume-name: a b`: \"a b\" is not allowed"),
        ("path: data, size: 100, docker_driver_options: repl=9", "driver-options: repl=9`: option `repl=9`"),
        ("path: ., size: 100", "container-path: .`: "),
    ];
    for (fork, left_out) in cases {
        let (lines, without) = suggestion(fork);
        assert!(without.contains(left_out) && without.is_empty() == left_out.is_empty(), "{fork}: {without}");
        let text: String = lines.lines().map(|line| format!("{}\n", &line[2..])).collect();
        good(&with("", &text, ""));
    }
    let (lines, _) = suggestion("path: data, docker_volume_driver: pxd");
    assert!(lines.contains("size: SIZE"), "{lines}");
}

#[test]
fn plans_name_existing_pods_tasks_and_instances() {
    let plan = |phase: &str| with("", "", &format!("plans: {{deploy: {{phases: {{p: {{{phase}}}}}}}}}"));
    let path = "plans.deploy.phases.p";
    let cases = [
        ("pod: none", ".pod", "there is no pod \"none\"; the pods are node"),
        ("strategy: serial", "", "`pod` is required"),
        ("pod: node, strategy: random", ".strategy", "serial-canary"),
        ("pod: node, steps: [{0: [[server]]}]", ".steps", "no steps for instance 1"),
        (
            "pod: node, steps: [{0: [[server]]}, {0: [[server]]}, {default: [[server]]}]",
            ".steps[1].0",
            "given twice",
        ),
        ("pod: node, steps: [{0: [[server]], 1: [[server]]}]", ".steps[0]", "one entry"),
        ("pod: node, steps: [{x: [[server]]}]", ".steps[0].x", "`default` is expected"),
        ("pod: node, steps: [{default: [[other]]}]", ".steps[0].default[0][0]", "no task \"other\""),
        ("pod: node, steps: [{default: [server]}]", ".steps[0].default[0]", "a list is expected"),
        ("pod: node, steps: [{default: [[server, server]]}]", ".steps[0].default[0]", "named twice"),
    ];
    for (phase, tail, message) in cases {
        rejects(&plan(phase), &format!("{path}{tail}"), message);
    }
    rejects(&with("", "", "plans: {other: {phases: {}}}"), "plans", "plan `deploy` is required");
    rejects(
        &with("", "", "plans: {deploy: {strategy: canary, phases: {}}}"),
        "plans.deploy.strategy",
        "serial, parallel",
    );
    let together = FULL.split("plans:").next().expect("pods").to_owned();
    rejects(&together, "pods.node", "tasks init and server share resource set shared");
}

#[test]
fn names_that_must_be_unique_in_the_service_are_compared() {
    let task = "goal: RUNNING\n        cmd: x\n        ports: {web: {port: 0, advertise: true}}\n        discovery: {prefix: d}";
    let pod = |name: &str| format!("  {name}:\n    count: 1\n    tasks:\n      t:\n        {task}\n");
    let spec = format!("name: db\npods:\n{}{}", pod("a"), pod("b"));
    rejects(
        &spec,
        "pods.b.tasks.t.ports.web",
        "duplicate advertised port \"web\"; pods.a.tasks.t.ports.web has it already",
    );
    rejects(&spec, "pods.b.tasks.t.discovery.prefix", "duplicate discovery prefix \"d\"");
}

#[test]
fn documents_and_names_are_checked() {
    let cases = [
        ("- a", "", "is a list; a mapping is expected"),
        ("name: db", "", "`pods` is required"),
        ("name: db\npods: {}", "pods", "one pod at least"),
        ("name: a__b\npods: {}", "name", "`__`"),
        ("name: ''\npods: {}", "name", "is empty"),
        ("name: db\nrole: x\npods: {}", "role", "unknown key"),
        ("name: db\npods: {a__b: {count: 1}}", "pods.a__b", "`__`"),
        ("name: db\npods: {a: {tasks: {}}}", "pods.a", "`count` is required"),
        ("name: db\npods: {a: {count: -1, tasks: {}}}", "pods.a.count", "from 0 to 100000"),
        ("name: db\npods: {a: {count: 1, tasks: {}}}", "pods.a.tasks", "one task at least"),
        (
            "name: db\npods: {a: {count: 1, tasks: {t/u: {goal: FINISHED}}}}",
            "pods.a.tasks.t/u.goal",
            "one of RUNNING, FINISH, ONCE",
        ),
        (
            "name: db\npods: {a: {count: 1, tasks: {t: {goal: ONCE, cmd: x}}}}",
            "pods.a.tasks.t",
            "has no resources",
        ),
        ("name: db\nscheduler: {role: x}\npods: {}", "scheduler.role", "unknown key"),
        ("name: db\npods: {a: {count: 1, count: 2}}", "pods.a.count", "Duplicate field 'count'"),
    ];
    for (text, path, message) in cases {
        rejects(text, path, message);
    }
    let long = MINIMAL.replace("name: db", &format!("name: {}", "x".repeat(64)));
    rejects(&long, "name", "the limit is 63");
    let many = MINIMAL.replace("count: 2", "count: 100001");
    rejects(&many, "pods.node.count", "from 0 to 100000");
}

#[test]
fn all_problems_are_reported_with_the_lines_of_the_template() {
    let text = "name: {{NAME}}\n{{#OFF}}\nhidden: 1\n{{/OFF}}\npods:\n  node:\n    count: {{COUNT}}\n    container: x\n    tasks:\n      server:\n        goal: FINISHED\n        cmd: {{CMD}}\n        memory: -1\n";
    let report = read(text, &env(&[("NAME", "db"), ("OFF", "false"), ("COUNT", "many")])).expect_err("bad");
    assert_eq!(
        report.to_string(),
        "svc.yml:7:12: pods.node.count: \"many\" is not allowed; a whole number from 0 to 100000 is expected (pods)\n\
         svc.yml:8:5: warning: pods.node.container: unknown key, ignored\n\
         svc.yml:10:7: pods.node.tasks.server: `cmd` is required\n\
         svc.yml:11:15: pods.node.tasks.server.goal: \"FINISHED\" is not supported; one of RUNNING, FINISH, ONCE is expected\n\
         svc.yml:12:14: warning: variable CMD is not set; it renders as nothing\n\
         svc.yml:13:17: pods.node.tasks.server.memory: \"-1\" is not allowed; a whole number from 1 to 1099511627776 is expected (MB)\n"
    );
    let report = read("name: {{#X}}", &BTreeMap::new()).expect_err("bad");
    assert_eq!(report.to_string(), "svc.yml:1:7: section {{#X}} is not closed\n");
    let report = read("name: db\npods: [1\n", &BTreeMap::new()).expect_err("bad");
    assert!(report.to_string().contains("not YAML"), "{report}");
}

#[test]
fn reports_are_limited() {
    let keys: String = (0..2000).map(|index| format!("key{index}: 1\n")).collect();
    let report = read(&with("", "", &keys), &BTreeMap::new()).expect_err("bad");
    assert_eq!(report.problems.len(), crate::problem::PROBLEMS_MAX);
    assert!(report.problems.iter().any(|problem| problem.message.contains("more problems follow")));
}

#[test]
fn reports_and_templates_of_a_hostile_spec_are_limited() {
    let unset = with("", "", &format!("web-url: \"{}\"", "{{UNSET}}".repeat(20_000)));
    let (_, report) = read(&unset, &BTreeMap::new()).expect("good");
    assert_eq!(report.problems.len(), crate::problem::PROBLEMS_MAX);
    let template = |_: &str| Ok("x".repeat(1 << 20));
    let configs = |count: usize| {
        let lines = (0..count).map(|number| format!("\n  c{number}: {{template: t, dest: d{number}}}"));
        with(&format!("configs:{}", lines.collect::<String>()), "", "")
    };
    let parsed = |count: usize| {
        let (text, env) = (configs(count), BTreeMap::new());
        parse(Input { file: "svc.yml", text: &text, env: &env, template: &template })
    };
    assert!(parsed(8).is_ok());
    let report = parsed(9).expect_err("9 MiB");
    assert!(report.to_string().contains("exceed 8388608 bytes together"), "{report}");
}

#[test]
fn scheduler_variables_reach_the_tasks() {
    let env = env(&[
        ("TASKCFG_ALL_A", "all"),
        ("TASKCFG_ALL_B", "all"),
        ("TASKCFG_NODE_B", "node"),
        ("TASKCFG_OTHER_C", "other"),
        ("ENABLE_AUTOMATIC_POD_REPLACEMENT", "true"),
        ("PERMANENT_FAILURE_TIMEOUT_SECS", "120"),
    ]);
    let (spec, _) = read(&with("env: {A: own, D: own}", "", ""), &env).expect("good");
    assert_eq!(spec.pods[0].tasks[0].env, self::env(&[("A", "all"), ("B", "node"), ("D", "own")]));
    let policy = spec.replacement.expect("policy");
    assert_eq!((policy.permanent_failure_timeout_secs, policy.min_replace_delay_secs), (120, 600));
}
