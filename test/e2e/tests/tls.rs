//! A cluster with TLS only: agents, executors, command line.

use std::path::Path;
use std::process::{Command, Stdio};

use tepui_client::scheduler;
use tepui_client::tls::{self, Trust};
use tepui_client::v1::FrameworkInfo;
use tepui_e2e::{Certificates, Program, binary, patience, wait_for};
use tepui_facilities::{Facility, available};

/// Runs a command against a master; success and output.
fn tepui(master: &Program, arguments: &[&str], ca: Option<&Path>) -> (bool, String) {
    let ca: Vec<_> = ca.map(|ca| ("TEPUI_TLS_CA", ca)).into_iter().collect();
    tepui_with(master, arguments, &ca)
}

fn tepui_with(master: &Program, arguments: &[&str], files: &[(&str, &Path)]) -> (bool, String) {
    let mut command = Command::new(binary());
    command.args(&arguments[..1]).arg(format!("--master={}", master.address)).envs(files.iter().copied());
    let output = command.args(&arguments[1..]).output().expect("the binary starts");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn cluster_accepts_only_tls() {
    if !available(&[Facility::Program("openssl")]) {
        return;
    }
    let certificates = Certificates::make();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let master = Program::start("master", &folder.path().join("master"), &certificates.flags(), Vec::new());
    let mut flags = certificates.flags();
    flags.push(format!("--master={}", master.address));
    flags.push(format!("--runtime_dir={}", folder.path().join("run").display()));
    flags.push("--resources=cpus:4;mem:1024;disk:1024;ports:[31000-32000]".to_string());
    let _agent = Program::start("agent", &folder.path().join("agent"), &flags, Vec::new());
    let ca = certificates.file("ca.pem");

    wait_for("the agent to register over TLS", || {
        let (done, printed) = tepui(&master, &["agents"], Some(&ca));
        (done && printed.contains("localhost")).then_some(())
    });
    // The executor of this task uses TLS too, regardless of its root filesystem.
    let own = certificates.file("elsewhere.pem");
    std::fs::rename(&ca, &own).expect("the file can be moved");
    let (done, printed) = tepui(&master, &["run", "--", "echo", "hello"], Some(&own));
    assert!(done && printed.contains("hello"), "{printed}");
    std::fs::rename(&own, &ca).expect("the file can be moved back");

    // Offers contain the scheme of agents.
    assert_eq!(scheme_of_first_offer(&master.address, &ca), "https");

    // Clients with another CA or without TLS are rejected.
    let (done, printed) = tepui(&master, &["agents"], Some(&Certificates::make().file("ca.pem")));
    assert!(!done, "{printed}");
    assert!(!tepui(&master, &["agents"], None).0);
    assert_eq!(tepui_e2e::Http::new(&master.address).get("/health").status, 0);
}

/// The scheme in the first offer, with a client library that trusts `ca`.
fn scheme_of_first_offer(master: &str, ca: &Path) -> String {
    tls::trust(&Trust { ca: ca.to_owned(), own: None }).expect("a certificate");
    let info = FrameworkInfo { user: "root".into(), name: "tls".into(), ..Default::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let offers = async {
        let mut framework = scheduler::connect(master, info).expect("an address");
        loop {
            if let scheduler::Event::Offers(offers) = framework.next_event().await.expect("it goes on") {
                return offers;
            }
        }
    };
    let offers =
        runtime.block_on(async { tokio::time::timeout(patience(), offers).await.expect("an offer") });
    offers[0].url.scheme.clone()
}

/// The certificate that a server shows, as openssl prints it.
fn shown(address: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", address]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().expect("openssl starts; test/setup installs it");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let from = text.find("-----BEGIN").unwrap_or_default();
    text[from..].split("-----END").next().unwrap_or_default().to_owned()
}

#[test]
fn renewed_certificates_are_loaded_without_restart() {
    if !available(&[Facility::Program("openssl")]) {
        return;
    }
    let certificates = Certificates::make();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let master = Program::start("master", &folder.path().join("master"), &certificates.flags(), Vec::new());
    let ca = certificates.file("ca.pem");
    let mut old = shown(&master.address);
    for _ in 0..2 {
        certificates.issue("next.pem", "next.key");
        // Certificate and key do not match for a moment; connections still work.
        std::fs::rename(certificates.file("next.pem"), certificates.file("cert.pem"))
            .expect("it can be moved");
        wait_for("the master to look", || {
            assert!(tepui(&master, &["metrics"], Some(&ca)).0, "{}", master.log());
            master.log().contains("cannot reload TLS certificates").then_some(())
        });
        assert_eq!(shown(&master.address), old);
        std::fs::rename(certificates.file("next.key"), certificates.file("key.pem"))
            .expect("it can be moved");
        wait_for("the new certificate", || (shown(&master.address) != old).then_some(()));
        assert!(tepui(&master, &["metrics"], Some(&ca)).0);
        old = shown(&master.address);
        assert!(old.starts_with("-----BEGIN CERTIFICATE"), "{old}");
    }
}

#[test]
fn client_without_certificate_is_rejected_if_required() {
    if !available(&[Facility::Program("openssl")]) {
        return;
    }
    let certificates = Certificates::make();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut flags = certificates.flags();
    flags.push("--tls_verify_clients".to_string());
    let master = Program::start("master", &folder.path().join("master"), &flags, Vec::new());
    // Executors present the certificate of the operator.
    let (ca, cert, key) =
        (certificates.file("ca.pem"), certificates.file("cert.pem"), certificates.file("key.pem"));
    let variables = serde_json::json!({"TEPUI_TLS_CERT": cert, "TEPUI_TLS_KEY": key});
    flags.push(format!("--executor_environment_variables={variables}"));
    flags.push(format!("--master={}", master.address));
    flags.push(format!("--runtime_dir={}", folder.path().join("run").display()));
    flags.push("--resources=cpus:4;mem:1024;disk:1024;ports:[31000-32000]".to_string());
    let _agent = Program::start("agent", &folder.path().join("agent"), &flags, Vec::new());

    let with = [("TEPUI_TLS_CA", &*ca), ("TEPUI_TLS_CERT", &*cert), ("TEPUI_TLS_KEY", &*key)];
    wait_for("the agent to register over TLS", || {
        let (done, printed) = tepui_with(&master, &["agents"], &with);
        (done && printed.contains("localhost")).then_some(())
    });
    let (done, printed) = tepui_with(&master, &["run", "--", "echo", "hello"], &with);
    assert!(done && printed.contains("hello"), "{printed}");
    let (done, printed) = tepui(&master, &["agents"], Some(&ca));
    assert!(!done, "without a certificate: {printed}");
    let other = Certificates::make();
    let (cert, key) = (other.file("cert.pem"), other.file("key.pem"));
    let with = [("TEPUI_TLS_CA", &*ca), ("TEPUI_TLS_CERT", &*cert), ("TEPUI_TLS_KEY", &*key)];
    let (done, printed) = tepui_with(&master, &["agents"], &with);
    assert!(!done, "with one that nobody we trust vouches for: {printed}");
}

#[test]
fn listening_beyond_loopback_requires_allow_insecure() {
    let printed = |program: &str, more: &[&str]| {
        let mut command = Command::new(binary());
        command.args([program, "--ip=0.0.0.0", "--port=0", "--work_dir=/nonexistent/tepui"]).args(more);
        let output = command.stdin(Stdio::null()).output().expect("the binary starts");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (program, more) in [("master", &["--registry=in_memory"][..]), ("agent", &["--master=127.0.0.1:1"])] {
        let (done, printed) = printed(program, more);
        assert!(!done && printed.contains("--allow_insecure"), "{program}: {printed}");
    }
}
