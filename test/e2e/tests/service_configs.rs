//! Config templates of services: fetched by tasks, rendered by their bootstrap, changed by updates.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tepui_e2e::{Certificates, Cluster, Service, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:4;mem:2048;disk:8192;ports:[31000-31999]";
const PROOF: [(&str, &str); 1] = [("Authorization", "Basic b3BzOnNlc2FtZQ==")];

/// A task that copies its rendered file to a place where the test finds it.
fn spec(copy: &Path) -> String {
    format!(
        r#"
name: hello
pods:
  hello:
    count: 1
    uris: [{{{{BOOTSTRAP_URI}}}}]
    tasks:
      server:
        goal: RUNNING
        cmd: "./bootstrap -resolve=false && cp etc/hello.conf {copy}.new && mv {copy}.new {copy} && exec sleep 100000"
        cpus: 0.1
        memory: 32
        env: {{GREETING: "a=b & c", SECURE: "false"}}
        ports:
          http: {{port: 0, env-key: PORT_HTTP}}
        configs:
          main: {{template: hello.conf, dest: etc/hello.conf}}
"#,
        copy = copy.display()
    )
}

#[test]
fn config_templates_are_rendered_in_tasks_from_their_environment() {
    let mut cluster = Cluster::without_agents(&[]);
    cluster.add_agent(&[RESOURCES]);
    let (folder, copy) = (cluster.folder().join("hello"), cluster.folder().join("rendered"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let template = |text: &str| std::fs::write(folder.join("hello.conf"), text).expect("a template");
    template(
        "greeting={{GREETING}}\n{{#SECURE}}tls\n{{/SECURE}}{{^SECURE}}plain {{PORT_HTTP}} {{TASK_NAME}}\n{{/SECURE}}",
    );
    let credentials = cluster.folder().join("credentials");
    std::fs::write(&credentials, r#"{"credentials": [{"principal": "ops", "secret": "sesame"}]}"#)
        .expect("written");
    std::fs::set_permissions(&credentials, PermissionsExt::from_mode(0o600)).expect("ours");
    let flag = format!("--api_credentials={}", credentials.display());
    let service = Service::start_with(&cluster.master.address, &folder, &spec(&copy), &[], &[&flag]);
    let rendered = |what: &str, part: &str| {
        wait_for(what, || std::fs::read_to_string(&copy).ok().filter(|text| text.contains(part)))
    };
    let first = rendered("the rendered file", "greeting");
    let port = first.split_whitespace().find_map(|word| word.parse::<u16>().ok());
    assert!(port.is_some_and(|port| port >= 31000), "{first}");
    assert_eq!(first, format!("greeting=a=b & c\nplain {} hello-0-server\n", port.unwrap_or_default()));

    template("changed for {{TASK_NAME}}\n");
    assert_eq!(service.http().send("POST", "/v1/update", &PROOF, b"").status, 200);
    assert_eq!(rendered("the changed file", "changed"), "changed for hello-0-server\n");
}

#[test]
fn artifacts_are_fetched_over_tls_by_agents_that_trust_the_api() {
    if !available(&[Facility::Program("openssl")]) {
        return;
    }
    let certificates = Certificates::make();
    let trust = format!("SSL_CERT_FILE={}", certificates.file("ca.pem").display());
    let mut cluster = Cluster::without_agents(&[]);
    cluster.add_agent_by(vec!["env".to_owned(), trust], &[RESOURCES]);
    let (folder, copy) = (cluster.folder().join("hello"), cluster.folder().join("rendered"));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("hello.conf"), "for {{TASK_NAME}}\n").expect("a template");
    let flag = |name: &str, file: &str| format!("--{name}={}", certificates.file(file).display());
    let tls = [flag("api_tls_cert", "cert.pem"), flag("api_tls_key", "key.pem")];
    let flags = [tls[0].as_str(), &tls[1]];
    let _service = Service::start_with(&cluster.master.address, &folder, &spec(&copy), &[], &flags);
    let rendered = wait_for("the rendered file", || std::fs::read_to_string(&copy).ok());
    assert_eq!(rendered, "for hello-0-server\n");
}
