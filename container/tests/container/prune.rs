//! Images are removed from the store: never what a container has or is about to get, and never by halves.

use std::collections::BTreeSet;

use crate::common::image::{self, Layer, with_image};
use crate::common::{Host, exited, until};
use serde_json::{Value, json};
use tepui_container::{Backend, image_names};
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchSpec};

const ISOLATION: &str = "filesystem/linux,namespaces/pid";
const WAIT: &str = "until test -e $MESOS_SANDBOX/go; do sleep 0.01; done; cat /of";

fn id(name: &str) -> ContainerId {
    ContainerId::root(name)
}

/// Images of two layers, the lower one the same for all; `/of` holds the name.
fn save(host: &Host, names: &[&str]) -> Option<()> {
    let base = Layer::busybox()?.tar();
    for name in names {
        let top = Layer::empty().file("of", &format!("{name}\n")).tar();
        image::docker_archive(&host.dir.path().join("images"), name, &json!({}), &[base.clone(), top]);
    }
    Some(())
}

fn spec(host: &Host, id: &ContainerId, image: &str, script: &str) -> LaunchSpec {
    LaunchSpec { container: with_image(image), ..host.spec(id, script) }
}

async fn prune(host: &Host, wanted: &[&str]) {
    let images: Vec<_> = wanted.iter().map(|name| with_image(name).unwrap().mesos.image.clone()).collect();
    let wanted = image_names(images.iter().map(|image| &**image)).unwrap();
    host.containerizer.prune_images(wanted).await.unwrap();
    until(|| (files(host, "gc") == 0).then_some(())).await;
}

fn files(host: &Host, dir: &str) -> usize {
    std::fs::read_dir(host.dir.path().join("store").join(dir)).unwrap().count()
}

/// The names of the images that the store has written down.
fn known(host: &Host) -> String {
    let text = std::fs::read(host.dir.path().join("store/images.json")).unwrap();
    let images: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let names: BTreeSet<&str> = images.iter().map(|image| image["reference"].as_str().unwrap()).collect();
    names.into_iter().collect::<Vec<_>>().join(" ")
}

fn go(host: &Host, id: &ContainerId) {
    std::fs::write(host.sandbox(id).join("go"), "").unwrap();
}

#[tokio::test]
async fn prune_keeps_images_of_running_nested_and_recovered_containers() {
    for backend in [Backend::Overlay, Backend::Copy] {
        let Some(mut host) = image::host(ISOLATION, backend, |_| ()) else { return };
        let Some(()) = save(&host, &["parent", "nested", "ended", "wanted"]) else { return };
        let (parent, nested) = (id("p"), id("p").child("n"));
        for image in ["ended", "wanted"] {
            assert_eq!(host.run(spec(&host, &id(image), image, "true")).await, exited(0));
        }
        host.launch(spec(&host, &parent, "parent", WAIT)).await;
        host.launch(spec(&host, &nested, "nested", WAIT)).await;
        assert_eq!((files(&host, "layers"), files(&host, "configs")), (5, 4));
        prune(&host, &["wanted"]).await;
        assert_eq!(known(&host), "nested:latest parent:latest wanted:latest", "{backend:?}");
        assert_eq!((files(&host, "layers"), files(&host, "configs")), (4, 3));
        let mut host = host.restart();
        host.recover(&[&parent, &nested]).await;
        prune(&host, &[]).await;
        assert_eq!(known(&host), "nested:latest parent:latest");
        go(&host, &nested);
        assert_eq!(host.exit_of(&nested).await.status, exited(0));
        go(&host, &parent);
        assert_eq!(host.exit_of(&parent).await.status, exited(0));
        assert_eq!(
            (host.read(&parent, "stdout"), host.read(&nested, "stdout")),
            ("parent\n".into(), "nested\n".into())
        );
        prune(&host, &[]).await;
        assert_eq!((known(&host), files(&host, "layers"), files(&host, "configs")), (String::new(), 0, 0));
        // Who wants one again gets it again.
        assert_eq!(host.run(spec(&host, &id("again"), "ended", "true")).await, exited(0));
    }
}

/// The image was brought again with other content, which the store keeps by the same name.
#[tokio::test]
async fn restarted_agent_keeps_unlisted_layers_of_running_containers() {
    let Some(mut host) = image::host(ISOLATION, Backend::Overlay, |_| ()) else { return };
    let Some(()) = save(&host, &["a"]) else { return };
    host.launch(spec(&host, &id("old"), "a", WAIT)).await;
    let base = Layer::busybox().unwrap().tar();
    let other = Layer::empty().file("of", "other\n").tar();
    image::docker_archive(&host.dir.path().join("images"), "a", &json!({}), &[base, other]);
    let mut fresh = spec(&host, &id("new"), "a", "cat /of");
    let info = fresh.container.as_mut().unwrap();
    info.mesos.get_or_insert_default().image.get_or_insert_default().cached = Some(false);
    assert_eq!(host.run(fresh).await, exited(0));
    assert_eq!(host.read(&id("new"), "stdout"), "other\n");
    let mut host = host.restart();
    host.recover(&[&id("old")]).await;
    prune(&host, &[]).await;
    go(&host, &id("old"));
    assert_eq!(host.exit_of(&id("old")).await.status, exited(0));
    assert_eq!(host.read(&id("old"), "stdout"), "a\n");
    prune(&host, &[]).await;
    assert_eq!(files(&host, "layers"), 0);
}

#[tokio::test]
async fn concurrent_launches_and_prunes_do_not_conflict() {
    const LAUNCHES: usize = 24;
    let Some(mut host) = image::host(ISOLATION, Backend::Overlay, |_| ()) else { return };
    let names = ["a", "b", "c"];
    let Some(()) = save(&host, &names) else { return };
    let containerizer = host.containerizer.clone();
    let pruning = tokio::spawn(async move {
        loop {
            containerizer.prune_images(BTreeSet::new()).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let image = |index: usize| names[index % names.len()];
    for index in 0..LAUNCHES {
        let spec = spec(&host, &id(&format!("c{index}")), image(index), "cat /of");
        host.submit(ContainerOp::Launch(Box::new(spec)));
    }
    let mut ended = 0;
    while ended < LAUNCHES {
        match host.event().await {
            ContainerEvent::Launched { .. } => (),
            ContainerEvent::Exited { termination, .. } => {
                assert_eq!(termination.status, exited(0));
                ended += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    pruning.abort();
    for index in 0..LAUNCHES {
        assert_eq!(host.read(&id(&format!("c{index}")), "stdout"), format!("{}\n", image(index)));
    }
}

/// Every state in which an agent that was killed may leave its store.
#[tokio::test]
async fn partially_pruned_layers_are_not_used_after_a_crash() {
    let Some(mut host) = image::host(ISOLATION, Backend::Overlay, |_| ()) else { return };
    let Some(()) = save(&host, &["a", "b"]) else { return };
    let store = host.dir.path().join("store");
    for image in ["a", "b"] {
        assert_eq!(host.run(spec(&host, &id(image), image, "true")).await, exited(0));
    }
    // Forgotten, but nothing was moved yet.
    let images = store.join("images.json");
    std::fs::write(&images, "[]").unwrap();
    let host = host.restart();
    assert_eq!((files(&host, "layers"), files(&host, "configs")), (0, 0));
    // Known to the list, because that was not on the disk yet, while a layer is half gone.
    let mut host = host;
    assert_eq!(host.run(spec(&host, &id("c"), "a", "true")).await, exited(0));
    let layer = std::fs::read_dir(store.join("layers")).unwrap().next().unwrap().unwrap().path();
    std::fs::rename(&layer, store.join("gc/0")).unwrap();
    let half = std::fs::read_dir(store.join("gc/0/overlay")).unwrap().next().unwrap().unwrap().path();
    let removed = if half.is_dir() { std::fs::remove_dir_all(&half) } else { std::fs::remove_file(&half) };
    removed.unwrap();
    let mut host = host.restart();
    assert_eq!(files(&host, "gc"), 0);
    assert_eq!(host.run(spec(&host, &id("d"), "a", "cat /of; sh -c true")).await, exited(0));
    assert_eq!(host.read(&id("d"), "stdout"), "a\n");
}
