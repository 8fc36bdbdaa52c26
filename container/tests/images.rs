//! Containers with images on a real kernel: what they see, what is kept of them, and what is left when they have ended.
#![allow(clippy::unwrap_used)]

mod common;

use common::image::{self, Layer};
use common::{Host, exited};
use serde_json::json;
use tepui_container::Backend;
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, LaunchSpec, LaunchStage};

const ISOLATION: &str = "filesystem/linux,namespaces/pid";

fn id(name: &str) -> ContainerId {
    ContainerId::root(name)
}

/// With the directory `images` as its registry.
fn host(backend: Backend) -> Option<Host> {
    Host::linux_with(ISOLATION, |options| {
        let dir = options.work_dir.parent().unwrap().to_owned();
        options.images.docker = true;
        options.images.docker_registry = dir.join("images");
        options.images.docker_store_dir = dir.join("store");
        options.images.backend = Some(backend);
    })
}

fn with_image(name: &str) -> Option<pb::ContainerInfo> {
    let image =
        format!(r#"{{"type":"MESOS","mesos":{{"image":{{"type":"DOCKER","docker":{{"name":"{name}"}}}}}}}}"#);
    Some(tepui_proto::json::from_slice(image.as_bytes()).unwrap())
}

async fn output(host: &mut Host, spec: LaunchSpec) -> String {
    let id = spec.id.clone();
    let status = host.run(spec).await;
    let (out, err) = (host.read(&id, "stdout"), host.read(&id, "stderr"));
    assert_eq!(status, exited(0), "{out}{err}");
    out
}

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap()
}

/// What is left of root file systems.
fn provisioned(host: &Host) -> Vec<String> {
    let dir = host.work_dir().join("provisioner/containers");
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn layers_become_the_root_of_containers() {
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
        let before = mounts();
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
        assert_eq!(mounts(), before, "nothing is mounted on the host");
        let kept = std::fs::read_dir(host.dir.path().join("store/layers")).unwrap().count();
        assert_eq!(kept, 2, "every layer is kept once");
    }
}

#[tokio::test]
async fn an_image_is_read_once_unless_it_must_not_come_from_the_store() {
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
async fn what_cannot_be_an_image_fails_the_launch_in_words() {
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
    let before = mounts();
    for (name, why) in [
        ("missing", "there is no image 'missing:latest'"),
        ("damaged", "layer 1 of 1: the layer is damaged"),
        ("nothing", "in the middle of a header"),
        ("cut", "in the middle of an entry"),
        ("../images/good", "is not the name of an image"),
        ("/etc/passwd", "is not the name of an image"),
    ] {
        let spec = LaunchSpec { container: with_image(name), ..host.spec(&id("a"), "true") };
        let (stage, message) = host.fail_to_launch(spec).await;
        assert!(message.contains(why), "{name}: {message}");
        assert_eq!(stage, LaunchStage::Start);
    }
    assert!(provisioned(&host).is_empty() && mounts() == before);
    assert_eq!(std::fs::read_dir(host.dir.path().join("store/staging")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(host.dir.path().join("store/layers")).unwrap().count(), 0);
}

#[tokio::test]
async fn root_file_systems_outlive_the_agent_and_not_their_containers() {
    let Some(base) = Layer::busybox() else { return };
    for backend in [Backend::Overlay, Backend::Copy] {
        let Some(mut host) = host(backend) else { return };
        let registry = host.dir.path().join("images");
        image::docker_archive(&registry, "a", &json!({}), &[base.tar()]);
        let before = mounts();
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
        common::until(|| provisioned(&host).is_empty().then_some(())).await;
        assert_eq!(mounts(), before);
    }
}
