//! Containers with images on a real kernel: what they see, what is kept of them, and what is left when they have ended.

use std::path::Path;

use crate::common::image::{self, Layer, with_image};
use crate::common::registry::{IDENTITY, LOGIN, Registry, Wants};
use crate::common::server::{self, Server};
use crate::common::{Host, exited, kernel, with_variable};
use serde_json::json;
use tepui_container::{Backend, Logins};
use tepui_facilities::{Facility, available};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, LaunchSpec, LaunchStage};

const ISOLATION: &str = "filesystem/linux,namespaces/pid";

fn id(name: &str) -> ContainerId {
    ContainerId::root(name)
}

fn host(backend: Backend) -> Option<Host> {
    image::host(ISOLATION, backend, |_| ())
}

async fn output(host: &mut Host, spec: LaunchSpec) -> String {
    let id = spec.id.clone();
    let status = host.run(spec).await;
    let (out, err) = (host.read(&id, "stdout"), host.read(&id, "stderr"));
    assert_eq!(status, exited(0), "{out}{err}");
    out
}

/// What is left of root file systems.
fn provisioned(host: &Host) -> Vec<String> {
    let dir = host.work_dir().join("provisioner/containers");
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn layers_become_the_root_filesystem_of_containers() {
    let Some(base) = Layer::busybox() else { return };
    let base = base.file("etc/of", "base\n").file("gone/file", "").file("opaque/old", "");
    let top = Layer::empty()
        .file("etc/of", "top\n")
        .file(".wh.gone", "")
        .file("opaque/.wh..wh..opq", "")
        .file("opaque/new", "");
    let layers = [base.tar(), top.tar()];
    for backend in [Backend::Overlay, Backend::Copy] {
        let Some(mut host) = host(backend) else { return };
        let registry = host.dir.path().join("images");
        image::docker_archive(&registry, "saved", &json!({}), &layers);
        image::oci_archive(&registry, "deep/oci:1.0", &json!({}), &layers);
        image::oci_layout(&registry.join("layout"), &json!({}), &layers);
        let before = kernel::mounts(host.dir.path());
        for (index, name) in ["saved", "deep/oci:1.0", "layout", "saved:latest"].into_iter().enumerate() {
            let script = "cat /etc/of; ls -d /gone /opaque/* 2>/dev/null; pwd; echo $MESOS_SANDBOX; echo x > /made; echo y > mine; \
                          test -e /etc/hosts && test -c /dev/null && ls /proc/1/comm";
            let spec = host.spec(&id(&format!("c{index}")), script);
            let seen = output(&mut host, LaunchSpec { container: with_image(name), ..spec }).await;
            let sandbox = "/mnt/mesos/sandbox";
            assert_eq!(
                seen,
                format!("top\n/opaque/new\n{sandbox}\n{sandbox}\n/proc/1/comm\n"),
                "{name} {backend:?}"
            );
            assert_eq!(host.read(&id(&format!("c{index}")), "mine"), "y\n");
            assert!(provisioned(&host).is_empty(), "what it wrote to its root is gone with it");
        }
        assert_eq!(kernel::mounts(host.dir.path()), before, "nothing is mounted on the host");
        let kept = std::fs::read_dir(host.dir.path().join("store/layers")).unwrap().count();
        assert_eq!(kept, 2, "every layer is kept once");
    }
}

/// A root file system has the devices that every container has, and those that an operator allows.
#[tokio::test]
async fn devices_of_the_host_are_in_the_image() {
    let Some(base) = Layer::busybox() else { return };
    let kmsg = r#"{"allowed_devices":[{"device":{"path":"/dev/kmsg"},"access":{"read":true}}]}"#;
    for (isolation, seen) in
        [("linux/devices,filesystem/linux", "/dev/kmsg\n/dev/null\n"), ("filesystem/linux", "/dev/null\n")]
    {
        let allow = |options: &mut tepui_container::Options| {
            options.isolators.allowed_devices = tepui_container::parse_devices(kmsg).unwrap();
        };
        let Some(mut host) = image::host(isolation, Backend::Overlay, allow) else { return };
        image::docker_archive(&host.dir.path().join("images"), "saved", &json!({}), &[base.tar()]);
        let spec = host.spec(&id("a"), "ls /dev/kmsg /dev/null 2>/dev/null; test -c /dev/null");
        let found = output(&mut host, LaunchSpec { container: with_image("saved"), ..spec }).await;
        assert_eq!(found, seen, "{isolation}");
    }
}

#[tokio::test]
async fn stored_image_is_reused_unless_uncached_is_requested() {
    let Some(base) = Layer::busybox() else { return };
    let Some(mut host) = host(Backend::Overlay) else { return };
    let registry = host.dir.path().join("images");
    image::docker_archive(&registry, "a", &json!({}), &[base.file("v", "1\n").tar()]);
    let spec =
        |host: &Host, name: &str, container| LaunchSpec { container, ..host.spec(&id(name), "cat /v") };
    let first = spec(&host, "c1", with_image("a"));
    assert_eq!(output(&mut host, first).await, "1\n");
    image::docker_archive(&registry, "a", &json!({}), &[Layer::busybox().unwrap().file("v", "2\n").tar()]);
    let mut host = host.restart();
    let again = spec(&host, "c2", with_image("a"));
    assert_eq!(output(&mut host, again).await, "1\n", "from the store, also of a former agent");
    let mut fresh = with_image("a");
    fresh.as_mut().unwrap().mesos.get_or_insert_default().image.get_or_insert_default().cached = Some(false);
    let fresh = spec(&host, "c3", fresh);
    assert_eq!(output(&mut host, fresh).await, "2\n");
}

#[tokio::test]
async fn missing_or_damaged_image_fails_the_launch_with_a_reason() {
    let Some(base) = Layer::busybox() else { return };
    let Some(mut host) = host(Backend::Overlay) else { return };
    let registry = host.dir.path().join("images");
    image::docker_archive(&registry, "good", &json!({}), &[base.tar()]);
    // One byte of the layer is another.
    let mut bytes = std::fs::read(registry.join("good.tar")).unwrap();
    let at = bytes.windows(12).position(|window| window == b"root:x:0:0::").unwrap();
    bytes[at] = b'R';
    std::fs::write(registry.join("damaged.tar"), &bytes).unwrap();
    std::fs::write(registry.join("nothing.tar"), "not an archive").unwrap();
    std::fs::write(registry.join("cut.tar"), &bytes[..bytes.len() / 2]).unwrap();
    let before = kernel::mounts(host.dir.path());
    for (name, why) in [
        ("missing", "image 'missing:latest' not found"),
        ("damaged", "layer 1 of 1: the layer is damaged"),
        ("nothing", "truncated in a header"),
        ("cut", "truncated in an entry"),
        ("../images/good", "is not the name of an image"),
        ("/etc/passwd", "is not the name of an image"),
    ] {
        let spec = LaunchSpec { container: with_image(name), ..host.spec(&id("a"), "true") };
        let (stage, message) = host.fail_to_launch(spec).await;
        assert!(message.contains(why), "{name}: {message}");
        assert_eq!(stage, LaunchStage::Start);
    }
    assert!(provisioned(&host).is_empty() && kernel::mounts(host.dir.path()) == before);
    assert_eq!(std::fs::read_dir(host.dir.path().join("store/staging")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(host.dir.path().join("store/layers")).unwrap().count(), 0);
}

#[tokio::test]
async fn root_filesystems_survive_the_agent_until_container_destroy() {
    let Some(base) = Layer::busybox() else { return };
    for backend in [Backend::Overlay, Backend::Copy] {
        let Some(mut host) = host(backend) else { return };
        let registry = host.dir.path().join("images");
        image::docker_archive(&registry, "a", &json!({}), &[base.tar()]);
        let before = kernel::mounts(host.dir.path());
        let script = "until test -e /mnt/mesos/sandbox/go; do sleep 0.01; done; cat /etc/passwd";
        for name in ["kept", "orphan"] {
            let spec = LaunchSpec { container: with_image("a"), ..host.spec(&id(name), script) };
            host.launch(spec).await;
        }
        let nested = LaunchSpec { container: with_image("a"), ..host.spec(&id("kept").child("n"), script) };
        host.launch(nested).await;
        std::fs::create_dir_all(host.work_dir().join("provisioner/containers/forgotten/rootfses/0/rootfs"))
            .unwrap();
        let mut host = host.restart();
        host.recover(&[&id("kept"), &id("kept").child("n")]).await;
        std::fs::write(host.sandbox(&id("kept")).join("go"), "").unwrap();
        std::fs::write(host.sandbox(&id("kept").child("n")).join("go"), "").unwrap();
        // The parent may end first, which ends the nested one too.
        for _ in 0..2 {
            host.event().await;
        }
        assert!(host.read(&id("kept"), "stdout").starts_with("root:"));
        crate::common::until(|| provisioned(&host).is_empty().then_some(())).await;
        assert_eq!(kernel::mounts(host.dir.path()), before);
    }
}

fn command(text: &str) -> pb::CommandInfo {
    tepui_proto::json::from_slice(text.replace('\'', "\"").as_bytes()).unwrap()
}

#[tokio::test]
async fn image_runtime_config_sets_user_environment_and_command() {
    let Some(base) = Layer::busybox() else { return };
    let base = base
        .file("etc/passwd", "root:x:0:0::/:/bin/sh\nweb:x:4321:4322::/:/bin/sh\n")
        .file("etc/group", "root:x:0:\nlog:x:4323:web\n")
        .file("srv/page", "");
    let Some(mut host) = image::host(&format!("{ISOLATION},docker/runtime"), Backend::Overlay, |_| ()) else {
        return;
    };
    let registry = host.dir.path().join("images");
    let runtime = json!({"Env": ["OF=image", "MINE=image"], "Entrypoint": ["sh", "-c"], "WorkingDir": "/srv", "User": "web",
        "Cmd": ["pwd; id -u; id -g; id -G; echo $OF $MINE; touch $MESOS_SANDBOX/by-web"]});
    image::docker_archive(&registry, "web", &runtime, &[base.tar()]);
    let plain = "{'shell':false,'environment':{'variables':[{'name':'MINE','value':'task'}]}}";
    let spec = |host: &Host, name: &str, text: &str| LaunchSpec {
        container: with_image("web"),
        command: command(text),
        environment: [("MINE".into(), "task".into())].into(),
        user: Some(String::from("nobody")),
        ..host.spec(&id(name), "")
    };
    let launch = spec(&host, "a", plain);
    assert_eq!(output(&mut host, launch).await, "/srv\n4321\n4322\n4322 4323\nimage task\n");
    let launch = spec(&host, "b", "{'shell':false,'arguments':['echo other']}");
    assert_eq!(output(&mut host, launch).await, "other\n", "given arguments take the place of the image's");
    let launch = spec(&host, "c", "{'value':'id -u','user':'nobody'}");
    assert_eq!(output(&mut host, launch).await, "65534\n", "a user that is named comes first");
    let script = "{'value':'id -u; grep NoNewPrivs /proc/self/status'}";
    let launch = LaunchSpec { no_root: true, ..spec(&host, "n", script) };
    let expected = "65534\nNoNewPrivs:\t1\n";
    assert_eq!(output(&mut host, launch).await, expected, "an image gives no framework without root a user");
    let launch = LaunchSpec { no_root: true, user: Some(String::from("root")), ..spec(&host, "r", script) };
    let (_, why) = host.fail_to_launch(launch).await;
    assert!(why.contains("may not use root"), "{why}");
    let nobody = json!({"User": "missing"});
    image::docker_archive(&registry, "nobody", &nobody, &[base.tar()]);
    let launch = LaunchSpec { container: with_image("nobody"), ..host.spec(&id("d"), "true") };
    let (_, why) = host.fail_to_launch(launch).await;
    assert!(why.contains("the image's user 'missing' is not in its /etc/passwd"), "{why}");
    let launch = LaunchSpec {
        command: command("{'shell':false}"),
        container: with_image("empty"),
        ..host.spec(&id("e"), "")
    };
    image::docker_archive(&registry, "empty", &json!({}), &[base.tar()]);
    let (_, why) = host.fail_to_launch(launch).await;
    assert!(why.contains("No executable is found"), "{why}");
}

/// What an executor of ours does to start its task, and a check beside it.
const START: &str = "IFS='\n'; set -- $TEPUI_TASK_LAUNCHER; unset IFS; ";

#[tokio::test]
async fn executor_runs_outside_of_the_task_root_filesystem() {
    let Some(base) = Layer::busybox() else { return };
    let isolation = format!("{ISOLATION},docker/runtime,linux/nnp,linux/capabilities");
    let bounded = |options: &mut tepui_container::Options| options.isolators.bounding_capabilities = Some(1);
    for backend in [Backend::Overlay, Backend::Copy] {
        let Some(mut host) = image::host(&isolation, backend, bounded) else { return };
        let registry = host.dir.path().join("images");
        let runtime = json!({"Env": ["OF=image"], "WorkingDir": "/etc", "User": "4321:4322"});
        image::docker_archive(&registry, "a", &runtime, &[base.tar()]);
        let before = kernel::mounts(host.dir.path());
        let value = "pwd; id -u; echo $OF $MESOS_SANDBOX; grep -E 'NoNew|CapBnd' /proc/self/status | tr -d '\\t'; ls / | tr '\\n' ' '";
        let task = pb::CommandInfo { value: Some(String::from(value)), ..Default::default() };
        let script = format!(
            "{START} echo $(id -u) ${{OF-nothing}} $(grep NoNew /proc/self/status | tr -d '\\t'); \"$@\"; \"$@\" sh -c 'echo checked in $(pwd)'; ls -d /usr; exec sleep 1000"
        );
        let spec =
            LaunchSpec { task: Some(task), container: with_image("a"), ..host.spec(&id("a"), &script) };
        host.launch(spec).await;
        let seen = crate::common::until(|| {
            Some(host.read(&id("a"), "stdout")).filter(|text| text.ends_with("/usr\n"))
        })
        .await;
        let expected = "0 nothing NoNewPrivs:0\n/etc\n4321\nimage /mnt/mesos/sandbox\nCapBnd:0000000000000001\nNoNewPrivs:1\n\
                        bin dev etc mnt proc sys checked in /etc\n/usr\n";
        assert_eq!(seen, expected, "{}", host.read(&id("a"), "stderr"));
        // A session sees what the task sees.
        let session =
            LaunchSpec { is_session: true, ..host.spec(&id("a").child("s"), "pwd; ls -d /usr; id -u") };
        assert_eq!(host.run(session).await, exited(0));
        assert_eq!(host.read(&id("a").child("s"), "stdout"), "/etc\n0\n");
        host.destroy(&id("a")).await;
        assert!(provisioned(&host).is_empty() && kernel::mounts(host.dir.path()) == before);
    }
}

#[tokio::test]
async fn images_can_be_volumes() {
    if !available(&[Facility::Program("tar")]) {
        return;
    }
    let Some(mut host) = host(Backend::Overlay) else { return };
    let registry = host.dir.path().join("images");
    image::docker_archive(&registry, "data", &json!({}), &[Layer::empty().file("set/one", "1\n").tar()]);
    let volume = |path: &str, mode: &str| {
        format!(
            "{{'mode':'{mode}','container_path':'{path}','image':{{'type':'DOCKER','docker':{{'name':'data'}}}}}}"
        )
    };
    let text = format!("{{'type':'MESOS','volumes':[{},{}]}}", volume("ro", "RO"), volume("rw", "RW"));
    let container = Some(tepui_proto::json::from_slice(text.replace('\'', "\"").as_bytes()).unwrap());
    let before = kernel::mounts(host.dir.path());
    let script = "cat ro/set/one; ! touch ro/x 2>/dev/null && touch rw/x && ls rw";
    let spec = LaunchSpec { container, ..host.spec(&id("a"), script) };
    assert_eq!(output(&mut host, spec).await, "1\nset\nx\n");
    assert!(provisioned(&host).is_empty() && kernel::mounts(host.dir.path()) == before);
}

#[tokio::test]
async fn images_are_pulled_with_basic_and_bearer_authentication() {
    let Some(base) = Layer::busybox() else { return };
    let layout = tempfile::tempdir().unwrap();
    let top = Layer::empty().file("etc/of", "registry\n");
    image::oci_layout(layout.path(), &json!({}), &[base.tar(), top.tar()]);
    for wants in [Wants::Nothing, Wants::Basic, Wants::Bearer] {
        let registry = Registry::start(layout.path(), wants);
        let logins = format!(r#"{{"auths":{{"{}":{{"auth":"{LOGIN}"}}}}}}"#, registry.address);
        let change = |options: &mut tepui_container::Options| {
            options.images.docker_registry = format!("http://{}", registry.address);
            options.images.docker_config = Logins::parse(logins.as_bytes()).unwrap();
        };
        let Some(mut host) = image::host(ISOLATION, Backend::Overlay, change) else { return };
        let spec = |host: &Host, name: &str, image: &str| LaunchSpec {
            container: with_image(image),
            ..host.spec(&id(name), "cat /etc/of")
        };
        let first = spec(&host, "a", "app");
        assert_eq!(output(&mut host, first).await, "registry\n");
        let asked = registry.requests.lock().unwrap().len();
        let again = spec(&host, "b", "app:latest");
        assert_eq!(output(&mut host, again).await, "registry\n");
        assert_eq!(registry.requests.lock().unwrap().len(), asked, "it is in the store");
        let named = spec(&host, "c", &format!("{}/app", registry.address));
        assert_eq!(output(&mut host, named).await, "registry\n");
        assert_eq!(registry.count("/elsewhere/"), 4, "a layer that is there is not brought again");
        let (_, why) = host.fail_to_launch(spec(&host, "d", "missing")).await;
        assert!(why.contains("answered 404 Not Found") || why.contains("answered 401"), "{why}");
        let staged = std::fs::read_dir(host.dir.path().join("store/staging")).unwrap().count();
        assert_eq!(staged, 0, "nothing is left of downloads");
    }
}

/// A login may be a token that is exchanged, and a program of the operator's may know it.
#[tokio::test]
async fn registry_tokens_come_from_config_and_credential_helpers() {
    let helpers = std::env::temp_dir().join("tepui-credential-helpers");
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", helpers.display());
    if !with_variable(
        "images::registry_tokens_come_from_config_and_credential_helpers",
        "PATH",
        Path::new(&path),
    ) {
        return;
    }
    let Some(base) = Layer::busybox() else { return };
    let layout = tempfile::tempdir().unwrap();
    image::oci_layout(layout.path(), &json!({}), &[base.tar()]);
    let registry = Registry::start(layout.path(), Wants::Bearer);
    let address = &registry.address;
    std::fs::create_dir_all(&helpers).unwrap();
    let helper = |name: &str, script: String| {
        let file = helpers.join(format!("docker-credential-{name}"));
        std::fs::write(&file, format!("#!/bin/sh\n[ \"$1\" = get ] || exit 3\nread -r server\n{script}\n"))
            .unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let answer = |name: &str, secret: &str| {
        format!(
            r#"[ "$server" = {address} ] && echo '{{"ServerURL":"x","Username":"{name}","Secret":"{secret}"}}'"#
        )
    };
    helper("plain", answer("user", "secret"));
    helper("token", answer("<token>", IDENTITY));
    helper("unknown", "echo credentials not found in native keychain; exit 1".into());
    helper("broken", "echo the vault is closed; exit 1".into());
    let (identity, login) = (format!(r#""identitytoken":"{IDENTITY}""#), format!(r#""auth":"{LOGIN}""#));
    for (logins, refusal) in [
        (format!(r#"{{"auths":{{"{address}":{{{identity}}}}}}}"#), None),
        (format!(r#"{{"credHelpers":{{"{address}":"plain"}}}}"#), None),
        (r#"{"credsStore":"token"}"#.into(), None),
        (format!(r#"{{"credsStore":"broken","credHelpers":{{"{address}":"token"}}}}"#), None),
        (format!(r#"{{"credsStore":"unknown","auths":{{"{address}":{{{login}}}}}}}"#), None),
        (r#"{"credsStore":"unknown"}"#.into(), Some("who are you")),
        (r#"{"credsStore":"broken"}"#.into(), Some("'docker-credential-broken' failed: the vault is closed")),
        (r#"{"credsStore":"../sh"}"#.into(), Some("'../sh' cannot be the name of a credential helper")),
    ] {
        let change = |options: &mut tepui_container::Options| {
            options.images.docker_registry = format!("http://{address}");
            options.images.docker_config = Logins::of_operator(logins.as_bytes()).unwrap();
        };
        let Some(mut host) = image::host(ISOLATION, Backend::Overlay, change) else { return };
        let spec = LaunchSpec { container: with_image("app"), ..host.spec(&id("a"), "echo in") };
        match refusal {
            None => assert_eq!(output(&mut host, spec).await, "in\n", "{logins}"),
            Some(refusal) => {
                let (_, why) = host.fail_to_launch(spec).await;
                assert!(why.contains(refusal), "{logins}: {why}");
            }
        }
    }
    std::fs::remove_dir_all(&helpers).unwrap();
}

#[tokio::test]
async fn missing_credentials_and_wrong_digests_fail_the_pull() {
    let Some(base) = Layer::busybox() else { return };
    let layout = tempfile::tempdir().unwrap();
    image::oci_layout(layout.path(), &json!({}), &[base.tar()]);
    let locked = Registry::start(layout.path(), Wants::Basic);
    let from = |address: String| {
        move |options: &mut tepui_container::Options| options.images.docker_registry = address
    };
    let Some(mut host) = image::host(ISOLATION, Backend::Overlay, from(format!("http://{}", locked.address)))
    else {
        return;
    };
    let spec = LaunchSpec { container: with_image("app"), ..host.spec(&id("a"), "true") };
    let (_, why) = host.fail_to_launch(spec).await;
    assert!(why.contains("requires credentials; add them to --docker_config"), "{why}");
    // Another layer under the same digest.
    let largest = std::fs::read_dir(layout.path().join("blobs/sha256")).unwrap().flatten();
    let largest = largest.max_by_key(|entry| entry.metadata().unwrap().len()).unwrap().path();
    let mut bytes = std::fs::read(&largest).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&largest, bytes).unwrap();
    let liar = Registry::start(layout.path(), Wants::Nothing);
    let mut host =
        image::host(ISOLATION, Backend::Overlay, from(format!("http://{}", liar.address))).unwrap();
    let spec = LaunchSpec { container: with_image("app"), ..host.spec(&id("a"), "true") };
    let (_, why) = host.fail_to_launch(spec).await;
    assert!(why.contains("layer 1 of 1"), "{why}");
}

#[tokio::test]
async fn https_registry_requires_a_trusted_certificate() {
    let test = "images::https_registry_requires_a_trusted_certificate";
    let Some(base) = Layer::busybox() else { return };
    let layout = tempfile::tempdir().unwrap();
    image::oci_layout(layout.path(), &json!({}), &[base.tar()]);
    let server = Server::start(pages(layout.path()), Some(server::tls())).await;
    let base = server.base.clone();
    let change = move |options: &mut tepui_container::Options| options.images.docker_registry = base;
    let Some(mut host) = image::host(ISOLATION, Backend::Overlay, change) else { return };
    let spec = LaunchSpec { container: with_image("app"), ..host.spec(&id("a"), "cat /etc/passwd") };
    if !crate::common::with_variable(test, "SSL_CERT_FILE", &server::fixtures().join("ca.pem")) {
        let (_, why) = host.fail_to_launch(spec).await;
        assert!(why.contains("certificate"), "{why}");
        return;
    }
    assert_eq!(output(&mut host, spec).await, "root:x:0:0::/:/bin/sh\n");
    assert_eq!(server.count("/v2/app/manifests/latest"), 1);
}

/// What a registry of one image answers.
fn pages(layout: &std::path::Path) -> Vec<(String, server::Page)> {
    let index = std::fs::read(layout.join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let latest = index["manifests"][0]["digest"].as_str().unwrap();
    let page = |entry: std::fs::DirEntry| {
        let digest = format!("sha256:{}", entry.file_name().into_string().unwrap());
        let page = server::ok(&std::fs::read(entry.path()).unwrap());
        let name = if digest == latest { String::from("latest") } else { digest.clone() };
        [(format!("/v2/app/manifests/{name}"), page.clone()), (format!("/v2/app/blobs/{digest}"), page)]
    };
    std::fs::read_dir(layout.join("blobs/sha256")).unwrap().flatten().flat_map(page).collect()
}
