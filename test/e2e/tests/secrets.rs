//! Secrets by reference: files of the operator that agents give to the tasks of one principal.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler, Service, wait_for};
use tepui_facilities::{Facility, available};

const VALUE: &str = "hunter2-of-web";
const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";

/// Writes a secret below the operator's directory.
fn write(root: &Path, name: &str, value: &str) {
    let path = root.join(name);
    let parent = path.parent().expect("a parent");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).expect("a directory");
    std::fs::write(&path, value).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("ours");
}

/// A cluster with an agent that has secrets; its directory is returned as well. `None`: recorded as skipped.
fn start() -> Option<(Cluster, tempfile::TempDir)> {
    if !available(&[Facility::Cgroups, Facility::Mounts]) {
        return None;
    }
    let secrets = tempfile::tempdir().expect("a directory");
    let flag = format!("--secret_dir={}", secrets.path().display());
    let cluster = Cluster::with(&[], &[RESOURCES, "--isolation=filesystem/linux,volume/secret", &flag]);
    Some((cluster, secrets))
}

fn subscribe(cluster: &Cluster, principal: &str) -> Scheduler {
    let mut info = Scheduler::info("dev");
    info["principal"] = json!(principal);
    Scheduler::subscribe(&cluster.http(), info)
}

fn reference(name: &str) -> Value {
    json!({"type": "REFERENCE", "reference": {"name": name}})
}

/// Runs a task with a secret in its variable KEY until it terminates.
fn run(scheduler: &mut Scheduler, id: &str, name: &str, command: &str, end: &str) -> Value {
    let offer = scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, id, command);
    let variables = json!([{"name": "KEY", "type": "SECRET", "secret": reference(name)}]);
    task["command"]["environment"] = json!({"variables": variables});
    let source = json!({"type": "SECRET", "secret": {"type": "REFERENCE", "reference": {"name": "db", "key": "password"}}});
    task["container"] =
        json!({"type": "MESOS", "volumes": [{"mode": "RO", "container_path": "keys/k", "source": source}]});
    assert_eq!(scheduler.launch(&offer, &[task]).status, 202);
    scheduler.reach(id, end)
}

/// Whether a text is in a file below a directory.
fn is_on_disk(directory: &Path, text: &str) -> bool {
    let found = Command::new("grep").args(["-rqsF", text]).arg(directory).status().expect("grep runs");
    found.success()
}

#[test]
fn tasks_get_secrets_of_their_principal_by_reference() {
    let Some((cluster, secrets)) = start() else { return };
    write(secrets.path(), "web/db/password", VALUE);
    write(secrets.path(), "other/token", "theirs");
    let mut web = subscribe(&cluster, "web");
    // The value itself is in no script and no output.
    let script = "test ${#KEY} = 14 && test \"$KEY\" = \"$(cat keys/k)\" && test $(stat -c %a keys/k) = 600";
    run(&mut web, "right", "db/password", script, "TASK_FINISHED");

    let missing = run(&mut web, "missing", "db/none", "true", "TASK_FAILED");
    assert_eq!(missing["reason"], "REASON_CONTAINER_LAUNCH_FAILED", "{missing}");
    let message = missing["message"].as_str().expect("a message");
    assert!(
        message.contains("the secret 'db/none': the principal 'web' has no secret of this name"),
        "{message}"
    );
    for name in ["token", "../other/token", "other/token"] {
        let id = format!("guess-{}", name.replace(['/', '.'], "-"));
        let guess = run(&mut web, &id, name, "true", "TASK_FAILED");
        assert!(guess["message"].as_str().is_some_and(|text| text.contains("the secret '")), "{guess}");
    }
    // It may hold an offer of everything.
    drop(web);
    let mut other = subscribe(&cluster, "other");
    let theirs = run(&mut other, "theirs", "token", "true", "TASK_FAILED");
    let message = theirs["message"].as_str().expect("a message");
    assert!(
        message.contains("the secret 'db/password': the principal 'other' has no secret of this name"),
        "{message}"
    );

    for http in [cluster.http(), cluster.agent_http()] {
        let state = http.get("/state").text();
        assert!(state.contains("guess-token") && !state.contains(VALUE), "{state}");
    }
    let work_dir = &cluster.agents[0].work_dir;
    assert!(is_on_disk(work_dir, "right") && !is_on_disk(work_dir, VALUE), "sandboxes and checkpoints");
    assert!(!is_on_disk(cluster.folder(), VALUE), "runtime directories and logs");
}

#[test]
fn pods_get_secrets_as_variables_and_files_and_wait_for_missing_ones() {
    let Some((cluster, secrets)) = start() else { return };
    let text = r#"
name: hello
pods:
  hello:
    count: 1
    secrets:
      password: {secret: db/password, env-key: PASSWORD, file: keys/password}
    tasks:
      server:
        goal: RUNNING
        cmd: 'test ${#PASSWORD} = 14 && test "$PASSWORD" = "$(cat keys/password)" && exec sleep 100000'
        cpus: 0.1
        memory: 32
"#;
    write(secrets.path(), "hello-principal/other", "x");
    let folder = cluster.folder().join("hello");
    let environment = [("ENABLE_BACKOFF", "false")];
    let service = Service::start_with(&cluster.master.address, &folder, text, &environment, &[]);
    wait_for("the launch to fail", || {
        service
            .log()
            .contains("the secret 'db/password': the principal 'hello-principal' has no secret of this name")
            .then_some(())
    });
    write(secrets.path(), "hello-principal/db/password", VALUE);
    service.complete("deploy");
    let task = service.running("hello-0", "hello-0-server");
    assert!(task.info.to_string().contains("db/password") && !task.info.to_string().contains(VALUE));
    assert!(!is_on_disk(cluster.folder(), VALUE), "records and logs");
}
