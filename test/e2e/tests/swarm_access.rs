//! Ways to a manager of `tepui swarm`: TLS, Unix sockets, and a standby that passes requests on. Needs root.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use tepui_e2e::dockerd::{Dockerd, IMAGE};
use tepui_e2e::swarm::{Manager, Node, Ran, Swarm, agent_flags, docker_command, exit_code, start_engine};
use tepui_e2e::{Certificates, Cluster, Masters, Program, wait_for};
use tepui_facilities::{Facility, Port, available};

const NOBODY: u32 = 65534;
const SMALL: [&str; 4] = ["-m", "20m", "--net", "none"];

fn run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run"], &SMALL[..], arguments].concat()
}

/// As managers, engines and the docker CLI take them.
fn tls_flags(certificates: &Certificates, cert: &str, key: &str) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", certificates.file(name).display());
    vec!["--tlsverify".to_owned(), file("tlscacert", "ca.pem"), file("tlscert", cert), file("tlskey", key)]
}

#[test]
fn clients_and_engines_are_verified_by_their_certificates() {
    if !available(&[Facility::Docker, Facility::Program("docker")]) {
        return;
    }
    let certificates = Certificates::make();
    let flags = |cert: &str, key: &str| tls_flags(&certificates, cert, key);
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
    // Files that are replaced are used for the next connections.
    let renewed = Certificates::make();
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        std::fs::copy(renewed.file(name), certificates.file(name)).expect("copied");
    }
    swarm.manager.cli = tls_flags(&renewed, "client.pem", "client.key");
    wait_for("the renewed certificates", || (swarm.docker(&["version"]).code == 0).then_some(()));
    swarm.manager.cli = cli;
    assert_ne!(swarm.docker(&["version"]).code, 0, "not with a certificate of the former authority");
}

#[test]
fn tls_without_verification_takes_any_client() {
    let certificates = Certificates::make();
    let manage = tls_flags(&certificates, "cert.pem", "key.pem");
    let manage: Vec<&str> =
        manage.iter().map(|flag| if flag == "--tlsverify" { "--tls" } else { flag }).collect();
    let cli = ["--tls".to_owned(), format!("--tlscacert={}", certificates.file("ca.pem").display())];
    let Some(swarm) = Swarm::with_cli(&[Node::default()], &[], &manage, &cli) else { return };
    assert_eq!(swarm.done(&run(&[IMAGE, "echo", "encrypted"])), "encrypted");
    let plain = docker_command(&swarm.manager.host, &["ps"]).output().expect("docker starts");
    assert!(!plain.status.success(), "not without TLS");
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
fn tcp_is_for_root_and_the_user_of_the_manager() {
    use std::os::unix::process::CommandExt;
    if !available(&[Facility::Root, Facility::Program("docker")]) {
        return;
    }
    let cluster = Cluster::without_agents(&[]);
    let folder = tempfile::tempdir().expect("a directory");
    let as_nobody = |manager: &Manager| {
        let mut command = docker_command(&manager.host, &["version"]);
        Ran::of(command.uid(NOBODY).env("HOME", "/nonexistent").output().expect("docker starts"))
    };
    let closed = Manager::start(&cluster.master.address, &folder.path().join("closed"), &[], &[]);
    assert_eq!(closed.docker(&["version"]).code, 0);
    let rejected = as_nobody(&closed);
    assert_ne!(rejected.code, 0);
    assert!(rejected.stderr.contains("user 65534 may not use this API"), "{rejected:?}");
    let flags = ["--allow-local-users"];
    let open = Manager::start(&cluster.master.address, &folder.path().join("open"), &flags, &[]);
    let admitted = as_nobody(&open);
    assert_eq!(admitted.code, 0, "{admitted:?}");
}

/// Two managers of one cluster with one node; the first leads.
struct Pair {
    first: Manager,
    second: Manager,
    _ports: [Port; 2],
    _agent: Program,
    _masters: Masters,
    _engine: Dockerd,
}

/// `options`: of both managers; `cli`: of the docker CLI.
fn pair(options: &[String], cli: &[String]) -> Option<Pair> {
    if !available(&[Facility::Docker, Facility::Program("docker"), Facility::Program("etcd")]) {
        return None;
    }
    let engine = start_engine(0, &Node::default());
    let masters = Masters::start(1, 1);
    let mut flags = agent_flags(&engine, &Node::default());
    flags.push(format!("--master={}", masters.list()));
    flags.push(format!("--runtime_dir={}", masters.folder().join("run").display()));
    flags.push(format!("--cgroups_root={}", masters.folder().file_name().expect("a name").display()));
    let agent = Program::start("agent", &masters.folder().join("agent"), &flags, Vec::new());
    masters.wait_for_agents(0, 1);
    let ports = [Port::take(), Port::take()];
    let start = |name: &str, port: &Port| {
        let address = port.address();
        let (host, advertise) = (format!("--host={address}"), format!("--advertise={address}"));
        let manage = [
            &host,
            &advertise,
            "--replication",
            "--replication-ttl=2s",
            "--cluster-opt=mesos.tasktimeout=1m",
        ];
        let manage: Vec<&str> = manage.into_iter().chain(options.iter().map(String::as_str)).collect();
        let mut manager = Manager::start(&masters.etcd.address(), &masters.folder().join(name), &manage, &[]);
        manager.cli = cli.to_vec();
        wait_for("the manager to know the leader", || is_ready(&manager));
        manager
    };
    let (first, second) = (start("first", &ports[0]), start("second", &ports[1]));
    Some(Pair { first, second, _ports: ports, _agent: agent, _masters: masters, _engine: engine })
}

fn is_ready(manager: &Manager) -> Option<()> {
    let info = manager.docker(&["info"]).stdout;
    (info.contains("Offers: 1") && info.contains("Status: Healthy")).then_some(())
}

fn done(manager: &Manager, arguments: &[&str]) -> String {
    let ran = manager.docker(arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout.trim().to_owned()
}

#[test]
fn standby_forwards_requests_and_takes_over() {
    let Some(mut pair) = pair(&[], &[]) else { return };
    let (first, second) = (&mut pair.first, &pair.second);
    assert!(done(first, &["info"]).contains("Role: primary"));
    assert!(done(second, &["info"]).contains("Role: replica"));
    let id = done(second, &run(&["-d", "--name", "web", IMAGE, "sh", "-c", "echo begun; exec sleep 1000"]));
    assert_eq!(done(second, &run(&[IMAGE, "echo", "by way of the leader"])), "by way of the leader");
    assert_eq!(done(first, &["ps", "-q", "--no-trunc"]), id);
    // Clients of the standby whose calls are with the leader when it is killed: one follows a log, one waits for a node.
    let mut follow = second.command(&["logs", "-f", "web"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut output = BufReader::new(follow.stdout.take().expect("piped")).lines();
    assert_eq!(output.next().expect("a line").expect("read"), "begun");
    let large = ["create", "-m", "100g", "--net", "none", "--name", "large", IMAGE, "true"];
    // Offers are asked for when a create finds no node.
    let revives = |leader: &Manager| leader.log().matches("effect=revive").count();
    let before = revives(first);
    let mut waiting = second.command(&large).stderr(Stdio::piped()).spawn().expect("docker starts");
    wait_for("the create to wait", || (revives(first) > before).then_some(()));
    first.kill();
    assert!(output.next().is_none(), "the stream ends");
    exit_code(&mut follow);
    assert_ne!(exit_code(&mut waiting), Some(0));
    wait_for("the second to lead", || is_ready(second));
    assert_eq!(done(second, &["ps", "-q", "--no-trunc"]), id, "nothing is lost");
    assert_eq!(done(second, &["exec", "web", "echo", "inside"]), "inside");
    assert_eq!(done(second, &run(&["--name", "large", IMAGE, "echo", "on"])), "on", "the name is free");
    first.restart();
    wait_for("the first to know the leader", || is_ready(first));
    assert!(done(first, &["info"]).contains("Role: replica"));
    done(first, &["rm", "-f", "web"]);
    assert_eq!(done(second, &["ps", "-q"]), "");
}

#[test]
fn standby_forwards_requests_over_tls() {
    let certificates = Certificates::make();
    let cli = tls_flags(&certificates, "client.pem", "client.key");
    let Some(pair) = pair(&tls_flags(&certificates, "cert.pem", "key.pem"), &cli) else { return };
    assert!(done(&pair.second, &["info"]).contains("Role: replica"));
    assert_eq!(done(&pair.second, &run(&[IMAGE, "echo", "safe"])), "safe");
    let plain = docker_command(&pair.second.host, &["ps"]).output().expect("docker starts");
    assert!(!plain.status.success(), "not without a certificate");
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
