//! `tepui service` on files.

use std::fs;
use std::process::{Command, Output};

const GOOD: &str = "name: db\npods:\n  node:\n    count: {{COUNT}}\n    tasks:\n      server:\n        goal: RUNNING\n        cmd: ./bootstrap && ./run\n        cpus: 1\n        configs: {main: {template: main.conf, dest: main}}\n";

fn validate(files: &[(&str, &str)], count: &str) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("written");
    }
    Command::new(env!("CARGO_BIN_EXE_tepui"))
        .args(["service", "validate", "svc.yml"])
        .env("COUNT", count)
        .current_dir(directory.path())
        .output()
        .expect("starts")
}

#[test]
fn valid_spec_prints_a_summary() {
    let output = validate(&[("svc.yml", GOOD), ("main.conf", "a={{A}}")], "3");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text, "svc.yml is valid: service db with 3 pods and 3 tasks\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn all_errors_are_printed_at_once_and_the_exit_code_is_1() {
    let output = validate(&[("svc.yml", GOOD)], "x\u{1b}[2J");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("svc.yml:4:12: pods.node.count: "), "{text}");
    assert!(
        text.contains("svc.yml:10:36: pods.node.tasks.server.configs.main.template: cannot read template"),
        "{text}"
    );
    assert!(text.contains("svc.yml is not valid: 2 errors"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let output = validate(&[], "1");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("cannot read svc.yml: No such file"), "{text}");
    let large = "#".repeat((1 << 20) + 1);
    let output = validate(&[("svc.yml", &large)], "1");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the file exceeds 1048576 bytes"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn options_are_rendered_into_the_spec_and_described() {
    let directory = tempfile::tempdir().expect("a directory");
    let spec = "name: db\npods:\n  node:\n    count: 1\n    external-volumes:\n      data: {type: DOCKER, driver: PWX, size: 1024, container-path: data, volume-name: '{{EXTERNAL_VOLUME_NAME}}', volume-sharing: '{{EXTERNAL_VOLUME_SHARING}}'}\n    tasks:\n      server: {goal: RUNNING, cmd: ./run, cpus: 1}\n";
    fs::write(directory.path().join("svc.yml"), spec).expect("written");
    let options = r#"{"external-volumes": {"volume_name": "mine", "pod-replacement-failure-policy": {"enable-automatic-pod-replacement": true}}}"#;
    fs::write(directory.path().join("options.json"), options).expect("written");
    fs::write(directory.path().join("bad.json"), r#"{"external-volumes": {"volume_sharing": 1}}"#)
        .expect("written");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tepui"));
        command.arg("service").args(arguments).current_dir(directory.path()).output().expect("starts")
    };
    let output = run(&["describe", "svc.yml", "--options", "options.json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["first volume mine-0", "replaced after 1200 s, at least 600 s apart", "\"POD_EXCLUSIVE\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = run(&["describe", "svc.yml", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["options"][1]["value"], "DefaultVolumeName");
    assert_eq!(document["schema"]["type"], "object");
    let output = run(&["validate", "svc.yml", "--options", "bad.json"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("external-volumes.volume_sharing: 1 is not allowed"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}
