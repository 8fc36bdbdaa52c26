//! Everything over TLS: agents, executors, the command line; and nobody else.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tepui_e2e::{Program, binary, wait_for};

/// A certificate of an authority of our own, for this machine, and the authority's.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn make() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let certificates = Self { folder };
        let file = |name| certificates.file(name);
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        std::fs::write(file("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("a file");
        openssl(
            &["req", "-x509", "-days", "2", "-subj", "/CN=authority"],
            &curve,
            &[("-keyout", &file("ca.key")), ("-out", &file("ca.pem"))],
        );
        openssl(
            &["req", "-subj", "/CN=localhost"],
            &curve,
            &[("-keyout", &file("key.pem")), ("-out", &file("request"))],
        );
        openssl(
            &["x509", "-req", "-days", "2", "-CAcreateserial"],
            &[],
            &[
                ("-in", &file("request")),
                ("-CA", &file("ca.pem")),
                ("-CAkey", &file("ca.key")),
                ("-extfile", &file("names")),
                ("-out", &file("cert.pem")),
            ],
        );
        certificates
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn flags(&self) -> Vec<String> {
        let flag = |name: &str, file: &str| format!("--{name}={}", self.file(file).display());
        vec![flag("tls_cert", "cert.pem"), flag("tls_key", "key.pem"), flag("tls_ca", "ca.pem")]
    }
}

fn openssl(words: &[&str], more: &[&str], files: &[(&str, &Path)]) {
    let mut command = Command::new("openssl");
    command.args(words).args(more).stdout(Stdio::null()).stderr(Stdio::null());
    files.iter().for_each(|(flag, path)| {
        command.arg(flag).arg(path);
    });
    assert!(command.status().expect("openssl starts; test/setup installs it").success(), "{words:?}");
}

/// Runs a command of ours against a master; whether it went well, and what it said.
fn tepui(master: &Program, arguments: &[&str], ca: Option<&Path>) -> (bool, String) {
    let mut command = Command::new(binary());
    command.args(&arguments[..1]).arg(format!("--master={}", master.address));
    if let Some(ca) = ca {
        command.env("TEPUI_TLS_CA", ca);
    }
    let output = command.args(&arguments[1..]).output().expect("the binary starts");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_cluster_that_speaks_tls_and_nothing_else() {
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
        let (done, said) = tepui(&master, &["agents"], Some(&ca));
        (done && said.contains("localhost")).then_some(())
    });
    // The executor of this task talks to its agent over TLS too.
    let (done, said) = tepui(&master, &["run", "--", "echo", "hello"], Some(&ca));
    assert!(done && said.contains("hello"), "{said}");

    // Who trusts somebody else, or does not speak TLS, is not answered.
    let (done, said) = tepui(&master, &["agents"], Some(&Certificates::make().file("ca.pem")));
    assert!(!done, "{said}");
    assert!(!tepui(&master, &["agents"], None).0);
    assert_eq!(tepui_e2e::Http::new(&master.address).get("/health").status, 0);
}

#[test]
fn listening_where_others_come_in_must_be_meant() {
    let said = |program: &str, more: &[&str]| {
        let mut command = Command::new(binary());
        command.args([program, "--ip=0.0.0.0", "--port=0", "--work_dir=/nonexistent/tepui"]).args(more);
        let output = command.stdin(Stdio::null()).output().expect("the binary starts");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (program, more) in [("master", &["--registry=in_memory"][..]), ("agent", &["--master=127.0.0.1:1"])] {
        let (done, said) = said(program, more);
        assert!(!done && said.contains("--allow_insecure"), "{program}: {said}");
    }
}
