//! Specs that are sent to a running scheduler, and what an update changes of its framework.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use tepui_e2e::{Cluster, Service, binary, wait_for};

const PROOF: (&str, &str) = ("Authorization", "Basic b3BzOnNlc2FtZQ==");
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn spec(count: u32, more: &str) -> String {
    format!(
        r#"
name: hello
pods:
  hello:
    count: {count}
    tasks:
      server:
        goal: RUNNING
        cmd: "./bootstrap && grep -q {{{{VERSION}}}} hello.conf && exec sleep 100000"
        cpus: 0.1
        memory: 32
        configs:
          main: {{template: conf/hello.conf, dest: hello.conf}}
{more}"#
    )
}

/// A folder with a spec and its template.
fn files(folder: &Path, spec: &str) -> PathBuf {
    std::fs::create_dir_all(folder.join("conf")).expect("a folder");
    std::fs::write(folder.join("conf/hello.conf"), "v1 v2 of {{TASK_NAME}}\n").expect("a template");
    std::fs::write(folder.join("svc.yml"), spec).expect("a spec");
    folder.join("svc.yml")
}

fn cluster(resources: &str) -> Cluster {
    let mut cluster = Cluster::without_agents(&[]);
    cluster.add_agent(&[resources]);
    cluster
}

fn credentials(cluster: &Cluster) -> String {
    let file = cluster.folder().join("credentials");
    std::fs::write(&file, r#"{"credentials": [{"principal": "ops", "secret": "sesame"}]}"#).expect("written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("ours");
    format!("--api_credentials={}", file.display())
}

fn update(cluster: &Cluster, service: &Service, arguments: &[&str]) -> Output {
    Command::new(binary())
        .args(["service", "update", "hello"])
        .args(arguments)
        .arg(format!("--api=http://{}", service.address))
        .arg(format!("--master={}", cluster.master.address))
        .args(["--principal=ops", "--secret=sesame"])
        .env("VERSION", "unused")
        .output()
        .expect("the command starts")
}

fn error(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn count(service: &Service) -> Option<u64> {
    let target = service.http().send("GET", "/v1/configurations/target", &[PROOF], b"").json()?;
    target["pod-specs"][0]["count"].as_u64()
}

#[test]
fn an_uploaded_spec_is_rolled_out_and_stays_until_the_files_change() {
    let cluster = cluster("--resources=cpus:4;mem:2048;disk:8192");
    let flag = credentials(&cluster);
    let own = cluster.folder().join("hello");
    files(&own, &spec(1, ""));
    let environment = [("VERSION", "v1")];
    let mut service =
        Service::start_with(&cluster.master.address, &own, &spec(1, ""), &environment, &[&flag]);
    let sent = files(&cluster.folder().join("sent"), &spec(2, ""));
    let path = sent.to_str().expect("a path");
    let rolled = update(&cluster, &service, &[path, "--wait"]);
    assert!(rolled.status.success(), "{rolled:?}");
    assert_eq!(count(&service), Some(2));

    // Errors name the file that was sent; the old spec stays.
    for (text, expected) in [
        (spec(2, "    colour: red\n").replace("count: 2", "count: two"), "svc.yml:5"),
        (spec(1, ""), "allow-decommission"),
        (spec(2, "").replace("name: hello", "name: other"), "cannot change"),
        (spec(2, "").replace("conf/hello.conf", "conf/none.conf"), "not part of the upload"),
    ] {
        std::fs::write(&sent, text).expect("written");
        let message = error(&update(&cluster, &service, &[path]));
        assert!(message.contains(expected), "{message}");
        assert_eq!(count(&service), Some(2), "{expected}");
    }

    // The scheduler starts again with its files, which have not changed since the upload.
    service.kill();
    service.restart();
    assert_eq!(count(&service), Some(2));
    // They have now; nothing but the size of a task differs.
    service.kill();
    service.write(&spec(3, ""));
    service.restart();
    assert_eq!(count(&service), Some(3));
    // An upload replaces them again, and the files replace it by request.
    std::fs::write(&sent, spec(4, "")).expect("written");
    assert!(update(&cluster, &service, &[path]).status.success());
    assert_eq!(count(&service), Some(4));
    service.write(&spec(5, ""));
    assert!(update(&cluster, &service, &[]).status.success());
    assert_eq!(count(&service), Some(5));
}

#[test]
fn options_of_an_upload_replace_those_of_the_scheduler() {
    let cluster = cluster("--resources=cpus:4;mem:2048;disk:8192");
    let flag = credentials(&cluster);
    let own = cluster.folder().join("hello");
    let text = spec(1, "        env: {VOLUME: \"{{EXTERNAL_VOLUME_NAME}}\"}\n");
    let file = files(&own, &text);
    let options = |name: &str| {
        let path = own.join(format!("{name}.json"));
        let value = json!({"external-volumes": {"volume_name": name}});
        std::fs::write(&path, value.to_string()).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let flags = [flag.as_str(), &format!("--options={}", options("own"))];
    let service = Service::start_with(&cluster.master.address, &own, &text, &[("VERSION", "v1")], &flags);
    let volume = || {
        let target = service.http().send("GET", "/v1/configurations/target", &[PROOF], b"").json()?;
        let task = &target["pod-specs"][0]["task-specs"][0];
        task["command-spec"]["environment"]["VOLUME"].as_str().map(str::to_owned)
    };
    assert_eq!(volume().as_deref(), Some("own"));
    let path = file.to_str().expect("a path");
    assert!(update(&cluster, &service, &[path, "--options", &options("sent")]).status.success());
    assert_eq!(volume().as_deref(), Some("sent"));
    std::fs::write(own.join("bad.json"), r#"{"external-volumes": {"volume": 1}}"#).expect("written");
    let bad = own.join("bad.json");
    let message = error(&update(&cluster, &service, &[path, "--options", bad.to_str().expect("a path")]));
    assert!(message.contains("external-volumes.volume: unknown option"), "{message}");
    assert!(update(&cluster, &service, &[path]).status.success());
    assert_eq!(volume().as_deref(), Some("own"), "options of the scheduler");
}

#[test]
fn uploads_are_limited_and_require_authentication() {
    let cluster = cluster("--resources=cpus:4;mem:2048;disk:8192");
    let own = cluster.folder().join("hello");
    files(&own, &spec(1, ""));
    let environment = [("VERSION", "v1")];
    let body =
        json!({"file": "svc.yml", "spec": spec(2, ""), "templates": {"conf/hello.conf": "v1"}}).to_string();
    let mut service = Service::start_with(&cluster.master.address, &own, &spec(1, ""), &environment, &[]);
    let open = service.http().send("POST", "/v1/update", &[JSON], body.as_bytes());
    assert!(open.status == 403 && open.text().contains("--api_credentials"), "{}", open.text());
    service.kill();
    drop(service);

    let flag = credentials(&cluster);
    let service = Service::start_with(&cluster.master.address, &own, &spec(1, ""), &environment, &[&flag]);
    let post = |headers: &[(&str, &str)], body: &[u8]| {
        let answer = service.http().send("POST", "/v1/update", headers, body);
        (answer.status, answer.text())
    };
    assert_eq!(post(&[JSON], body.as_bytes()).0, 401);
    let site = ("Sec-Fetch-Site", "cross-site");
    assert_eq!(post(&[PROOF, JSON, site], body.as_bytes()).0, 403, "another site's page");
    assert_eq!(
        post(&[PROOF, JSON, ("Origin", "http://evil.example")], body.as_bytes()).0,
        403,
        "another origin"
    );
    assert_eq!(post(&[PROOF, ("Content-Type", "text/plain")], body.as_bytes()).0, 415);
    let (status, message) = post(&[PROOF, JSON], br#"{"spec": "x", "file": "f", "colour": 1}"#);
    assert!(status == 400 && message.contains("colour"), "{message}");
    let large = json!({"file": "f", "spec": "x".repeat(9 << 20)}).to_string();
    assert_eq!(post(&[PROOF, JSON], large.as_bytes()).0, 413);
    assert_eq!(count(&service), Some(1), "nothing of it was taken");
    assert_eq!(post(&[PROOF, JSON], body.as_bytes()).0, 200);
    assert_eq!(count(&service), Some(2));
}

#[test]
fn update_adds_a_role_and_removed_pod_releases_its_reservations() {
    let cluster = cluster("--resources=cpus:2;cpus(web):2;mem:1024;mem(web):512;disk:4096;disk(web):4096");
    let own = cluster.folder().join("hello");
    let with =
        |more: &str| spec(1, more).replace("    count: 1", "    count: 1\n    allow-decommission: true");
    files(&own, &with(""));
    let mut service =
        Service::start_with(&cluster.master.address, &own, &with(""), &[("VERSION", "v1")], &[]);
    service.complete("deploy");
    let web = "  web:\n    count: 1\n    pre-reserved-role: web\n    tasks:\n      server: {goal: RUNNING, cmd: 'exec sleep 100000', cpus: 0.1, memory: 32}\n";
    service.write(&with(web));
    assert_eq!(service.post("/v1/update").status, 200);
    service.running("web-0", "web-0-server");
    service.complete("deploy");
    let roles = || {
        let frameworks = cluster.http().get("/frameworks").json()?;
        Some(frameworks["frameworks"][0]["roles"].clone())
    };
    assert_eq!(roles(), Some(json!(["hello-role", "web/hello-role"])));

    // The scheduler that removes the pod keeps the role, to be offered what it has to unreserve.
    service.kill();
    service.write(&with(""));
    service.restart();
    wait_for("the reservations to be released", || {
        let agents = cluster.http().get("/slaves").json()?;
        agents["slaves"][0]["reserved_resources"]["web/hello-role"].is_null().then_some(())
    });
    assert_eq!(roles(), Some(json!(["hello-role", "web/hello-role"])));
}
