//! Ways to a manager of `tepui swarm`: TLS, Unix sockets, and a standby that passes requests on. Needs root.

use tepui_e2e::dockerd::IMAGE;
use tepui_e2e::swarm::{Manager, Node, Swarm, agent_flags, start_engine};
use tepui_e2e::{Certificates, Cluster, Masters, Program, wait_for};
use tepui_facilities::{Facility, Port, available};

const SMALL: [&str; 4] = ["-m", "20m", "--net", "none"];

fn run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run"], &SMALL[..], arguments].concat()
}

#[test]
fn clients_and_engines_are_verified_by_their_certificates() {
    if !available(&[Facility::Docker, Facility::Program("docker")]) {
        return;
    }
    let certificates = Certificates::make();
    let flags = |cert: &str, key: &str| {
        let file = |flag: &str, name: &str| format!("--{flag}={}", certificates.file(name).display());
        let files = [file("tlscacert", "ca.pem"), file("tlscert", cert), file("tlskey", key)];
        ["--tlsverify".to_owned()].into_iter().chain(files).collect::<Vec<String>>()
    };
    let held = Port::take();
    let port = held.number();
    let node = Node {
        attributes: vec![format!("docker_port:{port}")],
        engine_arguments: [flags("cert.pem", "key.pem"), vec![format!("--host=tcp://127.0.0.1:{port}")]]
            .concat(),
        ..Node::default()
    };
    let manage = flags("cert.pem", "key.pem");
    let manage: Vec<&str> = manage.iter().map(String::as_str).collect();
    let cli = flags("client.pem", "client.key");
    let Some(mut swarm) = Swarm::with_cli(&[node], &[], &manage, &cli) else { return };
    assert_eq!(swarm.done(&run(&[IMAGE, "echo", "safe"])), "safe");
    assert!(swarm.done(&["info"]).contains(&format!("node-0: localhost:{port}")));
    swarm.manager.cli = Vec::new();
    assert_ne!(swarm.docker(&["ps"]).code, 0, "not without TLS");
    swarm.manager.cli =
        vec!["--tls".to_owned(), format!("--tlscacert={}", certificates.file("ca.pem").display())];
    assert_ne!(swarm.docker(&["ps"]).code, 0, "not without a certificate");
}

#[test]
fn unix_socket_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("swarm.sock");
    let host = format!("--host=unix://{}", path.display());
    let Some(swarm) = Swarm::start(1, &[&host]) else { return };
    assert_eq!(swarm.manager.host, format!("unix://{}", path.display()));
    assert_eq!(swarm.done(&run(&[IMAGE, "echo", "near"])), "near");
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn standby_forwards_requests_and_takes_over() {
    if !available(&[Facility::Docker, Facility::Program("docker"), Facility::Program("etcd")]) {
        return;
    }
    let engine = start_engine(0, &Node::default());
    let masters = Masters::start(1, 1);
    let mut flags = agent_flags(&engine, &Node::default());
    flags.push(format!("--master={}", masters.list()));
    flags.push(format!("--runtime_dir={}", masters.folder().join("run").display()));
    flags.push(format!("--cgroups_root={}", masters.folder().file_name().expect("a name").display()));
    let _agent = Program::start("agent", &masters.folder().join("agent"), &flags, Vec::new());
    masters.wait_for_agents(0, 1);
    let ports = [Port::take(), Port::take()];
    let manager = |name: &str, port: &Port| {
        let port = port.number();
        let (host, advertise) = (format!("--host=127.0.0.1:{port}"), format!("--advertise=127.0.0.1:{port}"));
        let manage = [
            host.as_str(),
            &advertise,
            "--replication",
            "--replication-ttl=2s",
            "--cluster-opt=mesos.tasktimeout=1m",
        ];
        Manager::start(&masters.etcd.address(), &masters.folder().join(name), &manage, &[])
    };
    let is_ready = |manager: &Manager| manager.docker(&["info"]).stdout.contains("Offers: 1").then_some(());
    let done = |manager: &Manager, arguments: &[&str]| {
        let ran = manager.docker(arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    let mut first = manager("first", &ports[0]);
    wait_for("the first to lead", || is_ready(&first));
    let second = manager("second", &ports[1]);
    wait_for("the second to know the leader", || is_ready(&second));
    assert!(done(&first, &["info"]).contains("Role: primary"));
    assert!(done(&second, &["info"]).contains("Role: replica"));
    let id = done(&second, &run(&["-d", "--name", "web", IMAGE, "sleep", "1000"]));
    assert_eq!(done(&second, &run(&[IMAGE, "echo", "by way of the leader"])), "by way of the leader");
    assert_eq!(done(&first, &["ps", "-q", "--no-trunc"]), id);
    first.kill();
    wait_for("the second to lead", || is_ready(&second));
    assert_eq!(done(&second, &["ps", "-q", "--no-trunc"]), id, "nothing is lost");
    assert_eq!(done(&second, &["exec", "web", "echo", "inside"]), "inside");
    assert_eq!(done(&second, &run(&[IMAGE, "echo", "on"])), "on");
    first.restart();
    wait_for("the first to know the leader", || is_ready(&first));
    done(&first, &["rm", "-f", "web"]);
    assert_eq!(done(&second, &["ps", "-q"]), "");
}

#[test]
fn manager_authenticates_to_the_master() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("credentials");
    std::fs::write(&file, r#"{"credentials":[{"principal":"swarm","secret":"s3cret"}]}"#).expect("a file");
    let flags = ["--authenticate_http_frameworks", &format!("--credentials={}", file.display())];
    let cluster = Cluster::without_agents(&flags);
    let start = |secret: &str| {
        let variables = [("TEPUI_PRINCIPAL", "swarm"), ("TEPUI_SECRET", secret)];
        Manager::start(&cluster.master.address, &folder.path().join(secret), &[], &variables)
    };
    let wrong = start("wrong");
    wait_for("the wrong secret to be rejected", || wrong.log().contains("401").then_some(()));
    let _right = start("s3cret");
    wait_for("the framework", || {
        let frameworks = cluster.http().get("/frameworks").json()?;
        let found = frameworks["frameworks"].as_array()?.iter().find(|it| it["name"] == "swarm")?.clone();
        (found["principal"] == "swarm").then_some(())
    });
}
