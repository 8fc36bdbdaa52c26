//! Certificates of an authority of the test's own, made by openssl.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A certificate for this machine (`cert.pem`, `key.pem`), one without a name (`client.pem`, `client.key`), and the
/// authority's (`ca.pem`).
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    pub fn make() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let certificates = Self { folder };
        let file = |name| certificates.file(name);
        std::fs::write(file("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("a file");
        openssl(
            &["req", "-x509", "-days", "2", "-subj", "/CN=authority"],
            &CURVE,
            &[("-keyout", &file("ca.key")), ("-out", &file("ca.pem"))],
        );
        certificates.issue("cert.pem", "key.pem");
        certificates.issue_to("/O=tepui", "client.pem", "client.key");
        certificates
    }

    /// Issues another certificate of the same authority for this machine; files of these names are replaced.
    pub fn issue(&self, cert: &str, key: &str) {
        self.issue_to("/CN=localhost", cert, key);
    }

    fn issue_to(&self, subject: &str, cert: &str, key: &str) {
        let file = |name| self.file(name);
        openssl(&["req", "-subj", subject], &CURVE, &[("-keyout", &file(key)), ("-out", &file("request"))]);
        openssl(
            &["x509", "-req", "-days", "2", "-CAcreateserial"],
            &[],
            &[
                ("-in", &file("request")),
                ("-CA", &file("ca.pem")),
                ("-CAkey", &file("ca.key")),
                ("-extfile", &file("names")),
                ("-out", &file(cert)),
            ],
        );
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What both programs need to speak TLS.
    pub fn flags(&self) -> Vec<String> {
        let flag = |name: &str, file: &str| format!("--{name}={}", self.file(file).display());
        vec![flag("tls_cert", "cert.pem"), flag("tls_key", "key.pem"), flag("tls_ca", "ca.pem")]
    }
}

const CURVE: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

fn openssl(words: &[&str], more: &[&str], files: &[(&str, &Path)]) {
    let mut command = Command::new("openssl");
    command.args(words).args(more).stdout(Stdio::null()).stderr(Stdio::null());
    files.iter().for_each(|(flag, path)| {
        command.arg(flag).arg(path);
    });
    assert!(command.status().expect("openssl starts; test/setup installs it").success(), "{words:?}");
}
