//! A real etcd of one or more members on free ports, and masters that share it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tepui_facilities::Port;

use crate::{Certificates, Http, Program, Wire, wait_for};

/// A running etcd. Dropping it kills every member and removes every file.
pub struct Etcd {
    members: Vec<Member>,
    _ports: Vec<Port>,
    _folder: tempfile::TempDir,
}

struct Member {
    arguments: Vec<String>,
    client: String,
    child: Option<Child>,
    log: std::path::PathBuf,
}

/// Masters that share one etcd.
pub struct Masters {
    pub masters: Vec<Program>,
    pub etcd: Etcd,
    folder: tempfile::TempDir,
}

/// The key prefix of the masters.
const PREFIX: &str = "/tepui/e2e";

/// The lease of the tests: long enough for a busy machine, short enough to wait for.
const LEASE: &str = "--leader_lease=2secs";

/// Of 4 KB each: more than any small quota has room for.
const FILLERS_MAX: usize = 1000;

impl Etcd {
    pub fn start(members: usize) -> Self {
        Self::start_with(members, "http", &[])
    }

    /// One member with TLS and these certificates that requires client certificates and has only the user `tepui` with this
    /// password.
    pub fn start_closed(certificates: &Certificates, password: &str) -> Self {
        let file = |flag: &str, name: &str| format!("--{flag}={}", certificates.file(name).display());
        let etcd = Self::start_with(
            1,
            "https",
            &[
                file("cert-file", "cert.pem"),
                file("key-file", "key.pem"),
                file("trusted-ca-file", "ca.pem"),
                "--client-cert-auth".to_string(),
                // Machines are shared and slow.
                "--bcrypt-cost=4".to_string(),
            ],
        );
        let by_curl = |path: &str, body: &Value| {
            let mut command = Command::new("curl");
            for (flag, name) in [("--cacert", "ca.pem"), ("--cert", "client.pem"), ("--key", "client.key")] {
                command.arg(flag).arg(certificates.file(name));
            }
            command.args(["--silent", "--fail", "--data", &body.to_string()]);
            command.arg(format!("https://{}/v3/{path}", etcd.members[0].client));
            command.output().expect("curl starts; test/setup installs it").status.success()
        };
        let add = |name: &str, password: &str| {
            assert!(by_curl("auth/user/add", &json!({"name": name, "password": password})), "{name}");
            assert!(by_curl("auth/user/grant", &json!({"user": name, "role": "root"})), "{name}");
        };
        wait_for("etcd to be healthy", || by_curl("kv/range", &json!({"key": "YQ=="})).then_some(()));
        add("root", "another password");
        add("tepui", password);
        assert!(by_curl("auth/enable", &json!({})));
        etcd
    }

    /// Takes the room that is left, until etcd raises its alarm. For an etcd with a small quota.
    pub fn fill(&self) {
        let value = BASE64_STANDARD.encode([0; 4096]);
        let fills =
            |at: usize| json!({"key": BASE64_STANDARD.encode(format!("filler/{at}")), "value": value});
        let refused = (0..FILLERS_MAX).any(|at| self.request("kv/put", &fills(at))["error"].is_string());
        assert!(
            refused,
            "no alarm after {FILLERS_MAX} writes: {}",
            self.request("maintenance/status", &json!({}))
        );
    }

    /// Makes room and takes the alarm back, as an operator would.
    pub fn make_room(&self) {
        let (from, to) = (BASE64_STANDARD.encode("filler/"), BASE64_STANDARD.encode("filler0"));
        let deleted = self.request("kv/deleterange", &json!({"key": from, "range_end": to}));
        let revision = &deleted["header"]["revision"];
        self.request("kv/compaction", &json!({"revision": revision, "physical": true}));
        self.request("maintenance/defragment", &json!({}));
        let alarms = self.request("maintenance/alarm", &json!({"action": "GET"}));
        for alarm in alarms["alarms"].as_array().into_iter().flatten() {
            let (member, kind) = (&alarm["memberID"], &alarm["alarm"]);
            self.request(
                "maintenance/alarm",
                &json!({"action": "DEACTIVATE", "memberID": member, "alarm": kind}),
            );
        }
    }

    fn start_with(members: usize, scheme: &str, flags: &[String]) -> Self {
        let folder = tempfile::Builder::new().prefix("tepui-etcd-").tempdir().expect("a temporary directory");
        let ports: Vec<Port> = (0..members * 2).map(|_| Port::take()).collect();
        let peer = |at: usize| format!("http://{}", ports[members + at].address());
        let cluster: Vec<String> = (0..members).map(|at| format!("m{at}={}", peer(at))).collect();
        let member = |at: usize| {
            let client = ports[at].address();
            let arguments = [
                format!("--name=m{at}"),
                format!("--data-dir={}", folder.path().join(format!("m{at}")).display()),
                format!("--listen-client-urls={scheme}://{client}"),
                format!("--advertise-client-urls={scheme}://{client}"),
                format!("--listen-peer-urls={}", peer(at)),
                format!("--initial-advertise-peer-urls={}", peer(at)),
                format!("--initial-cluster={}", cluster.join(",")),
                "--heartbeat-interval=50".to_string(),
                "--election-timeout=500".to_string(),
            ];
            let log = folder.path().join(format!("m{at}.log"));
            Member { arguments: [&arguments[..], flags].concat(), client, child: None, log }
        };
        let members: Vec<Member> = (0..members).map(member).collect();
        let mut etcd = Self { members, _ports: ports, _folder: folder };
        (0..etcd.members.len()).for_each(|at| etcd.start_member(at));
        if scheme == "http" {
            etcd.wait_until_healthy();
        }
        etcd
    }

    /// `etcd://host:port,host:port/prefix`.
    pub fn address(&self) -> String {
        let clients: Vec<&str> = self.members.iter().map(|member| member.client.as_str()).collect();
        format!("etcd://{}{PREFIX}", clients.join(","))
    }

    /// The same over TLS, with a login.
    pub fn closed_address(&self, login: &str) -> String {
        self.address().replace("etcd://", &format!("etcds://{login}@"))
    }

    /// A request of etcd's HTTP API.
    pub fn request(&self, path: &str, body: &Value) -> Value {
        let answer = Http::new(&self.members[0].client).post(&format!("/v3/{path}"), body);
        answer.json().unwrap_or_else(|| panic!("{path}: {} {}", answer.status, answer.text()))
    }

    /// The name of a key of the masters, as that API writes it.
    pub fn key(name: &str) -> String {
        BASE64_STANDARD.encode(format!("{PREFIX}/{name}"))
    }

    /// SIGKILL.
    pub fn kill_member(&mut self, at: usize) {
        self.members[at].kill();
    }

    pub fn start_member(&mut self, at: usize) {
        let member = &mut self.members[at];
        let log = File::options().create(true).append(true).open(&member.log).expect("the log can be opened");
        let child = Command::new("etcd")
            .args(&member.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("etcd starts; test/setup installs it");
        member.child = Some(child);
    }

    pub fn wait_until_healthy(&self) {
        wait_for("etcd to be healthy", || {
            let healthy = |member: &Member| Http::new(&member.client).get("/health").text().contains("true");
            self.members.iter().filter(|member| member.child.is_some()).all(healthy).then_some(())
        });
    }
}

impl Member {
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the child can be killed");
            child.wait().expect("the child can be waited for");
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
    }
}

impl Masters {
    /// So many masters on an etcd of so many members; one of them leads.
    pub fn start(masters: usize, members: usize) -> Self {
        let etcd = Etcd::start(members);
        let addresses = vec![etcd.address(); masters];
        Self::start_at(etcd, &addresses)
    }

    /// So many masters on an etcd of one member that has room for so many bytes.
    pub fn start_with_quota(masters: usize, bytes: u64) -> Self {
        let etcd = Etcd::start_with(1, "http", &[format!("--quota-backend-bytes={bytes}")]);
        let addresses = vec![etcd.address(); masters];
        Self::start_at(etcd, &addresses)
    }

    /// Several masters on an etcd of one member, each over its own wire.
    pub fn start_by_wire(masters: usize) -> (Self, Vec<Wire>) {
        let etcd = Etcd::start(1);
        let wires: Vec<Wire> = (0..masters).map(|_| Wire::to(&etcd.members[0].client)).collect();
        let addresses: Vec<String> =
            wires.iter().map(|wire| format!("etcd://{}{PREFIX}", wire.address)).collect();
        (Self::start_at(etcd, &addresses), wires)
    }

    fn start_at(etcd: Etcd, addresses: &[String]) -> Self {
        let folder = tempfile::Builder::new().prefix("tepui-e2e-").tempdir().expect("a temporary directory");
        let master = |(at, address): (usize, &String)| {
            let flags = [format!("--registry={address}"), LEASE.to_string()];
            Program::start("master", &folder.path().join(format!("master-{at}")), &flags, Vec::new())
        };
        let masters = addresses.iter().enumerate().map(master).collect();
        let masters = Self { masters, etcd, folder };
        masters.leader();
        masters
    }

    /// Which one leads, once all that run agree.
    pub fn leader(&self) -> usize {
        wait_for("a master to lead", || self.named(|_| true))
    }

    /// Which one leads once this one, dead or silenced by the test, does not.
    pub fn leader_after(&self, old: usize) -> usize {
        let included = |at| at != old;
        wait_for("another master to lead", || self.named(included).filter(|leader| *leader != old))
    }

    /// The leader according to the included masters, if they agree.
    fn named(&self, is_included: impl Fn(usize) -> bool) -> Option<usize> {
        let included =
            self.masters.iter().enumerate().filter(|(at, one)| one.has_child() && is_included(*at));
        let mut named = included.map(|(_, master)| leader_of(&Http::new(&master.address)));
        let first = named.next()??;
        let same = named.all(|other| other.as_ref() == Some(&first));
        let port = first.rsplit(':').next()?.to_string();
        let of_port = |master: &Program| master.address.ends_with(&format!(":{port}"));
        self.masters.iter().position(of_port).filter(|_| same)
    }

    pub fn http(&self, at: usize) -> Http {
        Http::new(&self.masters[at].address)
    }

    /// All masters by comma.
    pub fn list(&self) -> String {
        let all: Vec<&str> = self.masters.iter().map(|master| master.address.as_str()).collect();
        all.join(",")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// An agent that finds the leader by `master`.
    pub fn agent(&self, name: &str, master: &str) -> Program {
        let flags = [
            format!("--master={master}"),
            format!("--runtime_dir={}", self.folder().join(format!("run-{name}")).display()),
            "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]".to_string(),
            "--registration_backoff_factor=100ms".to_string(),
        ];
        Program::start("agent", &self.folder().join(name), &flags, Vec::new())
    }

    /// Waits until the master at `at` has this many active agents.
    pub fn wait_for_agents(&self, at: usize, count: usize) {
        wait_for("agents to register", || {
            let agents = self.http(at).get("/slaves").json()?;
            let agents = agents["slaves"].as_array()?;
            (agents.iter().filter(|agent| agent["active"] == true).count() == count).then_some(())
        });
    }
}

/// Whom a master names as the leader: `//host:port`.
fn leader_of(http: &Http) -> Option<String> {
    http.get("/redirect").header("location").map(str::to_string)
}
