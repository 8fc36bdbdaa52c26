//! Volumes, their links in sandboxes, and what may be removed.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::common::{Host, exited, until};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchStage, Volume};

fn id(value: &str) -> ContainerId {
    ContainerId::root(value)
}

fn volume(source: &Path, target: &str) -> Volume {
    Volume {
        source: source.display().to_string(),
        target: target.to_owned(),
        read_only: false,
        shared: false,
    }
}

impl Host {
    async fn path_op(&mut self, op: fn(String) -> ContainerOp, path: &Path) -> Option<String> {
        let path = path.display().to_string();
        self.submit(op(path.clone()));
        match self.event().await {
            ContainerEvent::PathDone { path: done, error } if done == path => error,
            other => panic!("{other:?}"),
        }
    }
}

fn remove(path: String) -> ContainerOp {
    ContainerOp::RemovePath { path }
}

fn create(path: String) -> ContainerOp {
    ContainerOp::CreateVolume { path }
}

fn destroy(path: String) -> ContainerOp {
    ContainerOp::DestroyVolume { path }
}

#[tokio::test]
async fn paths_outside_of_the_work_directory_are_not_removed() {
    let mut host = Host::new();
    let (work, outside) = (host.work_dir(), host.dir.path().join("outside"));
    std::fs::create_dir_all(outside.join("precious")).unwrap();
    std::fs::create_dir_all(work.join("slaves/old/run/containers")).unwrap();
    symlink(&outside, work.join("slaves/old/run/containers/link")).unwrap();
    for refused in [
        outside.clone(),
        work.clone(),
        work.join("../outside"),
        work.join("slaves/old/run/containers/link/precious"),
    ] {
        assert!(host.path_op(remove, &refused).await.is_some(), "{}", refused.display());
    }
    assert_eq!(host.path_op(remove, &work.join("slaves/old")).await, None);
    assert_eq!(host.path_op(remove, &work.join("slaves/old")).await, None, "again is no error");
    assert!(!work.join("slaves/old").exists());
    assert!(outside.join("precious").exists());
}

#[tokio::test]
async fn volume_directories_are_created_and_destroyed_in_order() {
    let mut host = Host::new();
    let path = host.work_dir().join("volumes/roles/web/v1");
    assert_eq!(host.path_op(create, &path).await, None);
    std::fs::write(path.join("file"), "kept").unwrap();
    assert_eq!(host.path_op(create, &path).await, None);
    assert!(path.join("file").exists());
    let text = path.display().to_string();
    host.submit(destroy(text.clone()));
    host.submit(create(text.clone()));
    for _ in 0..2 {
        assert_eq!(host.event().await, ContainerEvent::PathDone { path: text.clone(), error: None });
    }
    assert!(path.exists() && !path.join("file").exists());
    let work = host.work_dir();
    for refused in [Path::new("/"), Path::new("relative"), &work, work.parent().unwrap(), &work.join("../x")]
    {
        assert!(host.path_op(destroy, refused).await.is_some(), "{}", refused.display());
    }
}

#[tokio::test]
async fn a_volume_is_a_link_in_the_sandbox() {
    let mut host = Host::new();
    let a = id("a");
    let (v1, v2) = (host.work_dir().join("volumes/v1"), host.work_dir().join("volumes/v2"));
    let mut spec = host.spec(&a, "echo hello > data/file; while ! [ -e more/deep ]; do sleep 0.01; done");
    spec.volumes = vec![volume(&v1, "data")];
    if tepui_facilities::is_root() {
        spec.user = Some(String::from("nobody"));
    }
    // Not waited for: the launch is.
    host.submit(create(v1.display().to_string()));
    host.submit(create(v2.display().to_string()));
    host.submit(ContainerOp::Launch(Box::new(spec)));
    let mut launched = false;
    for _ in 0..3 {
        launched |= matches!(host.event().await, ContainerEvent::Launched { .. });
    }
    assert!(launched);
    until(|| v1.join("file").exists().then_some(())).await;
    let volumes = vec![volume(&v2, "more/deep")];
    host.submit(ContainerOp::Update {
        id: a.clone(),
        resources: Vec::new(),
        limits: BTreeMap::new(),
        volumes,
    });
    assert_eq!(host.exit_of(&a).await.status, exited(0));
    assert_eq!(std::fs::read_to_string(v1.join("file")).unwrap(), "hello\n");
    assert!(!host.sandbox(&a).join("data").exists(), "no longer its volume");
    let owner = host.sandbox(&a).metadata().unwrap().uid();
    assert_eq!((v1.metadata().unwrap().uid(), v2.metadata().unwrap().uid()), (owner, owner));
}

#[tokio::test]
async fn volume_target_outside_of_the_sandbox_is_rejected() {
    let mut host = Host::new();
    let source = host.work_dir().join("v");
    std::fs::create_dir_all(&source).unwrap();
    for (name, target) in [("a", "/etc/x"), ("b", "../x"), ("c", ""), ("d", "stdout")] {
        let mut spec = host.spec(&id(name), "true");
        spec.volumes = vec![volume(&source, target)];
        assert_eq!(host.fail_to_launch(spec).await.0, LaunchStage::Sandbox, "{target}");
    }
    let mut missing = host.spec(&id("e"), "true");
    missing.volumes = vec![volume(&host.work_dir().join("nowhere"), "x")];
    let (stage, message) = host.fail_to_launch(missing).await;
    assert!(stage == LaunchStage::Sandbox && message.contains("No such file"), "{message}");
}

fn parent_volume(path: &str, target: &str) -> pb::ContainerInfo {
    use pb::volume::{Source, source};
    let sandbox_path = source::SandboxPath {
        r#type: Some(source::sandbox_path::Type::PARENT),
        path: path.to_owned(),
        ..Default::default()
    };
    let source = Source {
        r#type: Some(source::Type::SANDBOX_PATH),
        sandbox_path: sandbox_path.into(),
        ..Default::default()
    };
    let volume = pb::Volume {
        mode: pb::volume::Mode::RW,
        container_path: target.to_owned(),
        source: source.into(),
        ..Default::default()
    };
    pb::ContainerInfo { r#type: pb::container_info::Type::MESOS, volumes: vec![volume], ..Default::default() }
}

#[tokio::test]
async fn nested_containers_share_a_directory_of_their_parent() {
    let mut host = Host::new();
    let a = id("a");
    host.launch_script(&a, "sleep 1000").await;
    for (name, script) in [("b", "echo one >> both/file"), ("c", "echo two >> both/file")] {
        let mut spec = host.spec(&a.child(name), script);
        spec.container = Some(parent_volume("shared", "both"));
        assert_eq!(host.run(spec).await, exited(0));
    }
    assert_eq!(host.read(&a, "shared/file"), "one\ntwo\n");
    let mut evil = host.spec(&a.child("d"), "true");
    evil.container = Some(parent_volume("../shared", "both"));
    assert_eq!(host.fail_to_launch(evil).await.0, LaunchStage::Start);
    host.destroy(&a).await;
}

#[tokio::test]
async fn images_and_docker_containers_require_more_isolators() {
    let mut host = Host::new();
    let docker = pb::ContainerInfo { r#type: pb::container_info::Type::DOCKER, ..Default::default() };
    let image = pb::container_info::MesosInfo { image: pb::Image::default().into(), ..Default::default() };
    let image = pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        mesos: image.into(),
        ..Default::default()
    };
    for (name, info) in [("a", docker), ("b", image), ("c", parent_volume("x", "y"))] {
        let mut spec = host.spec(&id(name), "true");
        spec.container = Some(info);
        assert_eq!(host.fail_to_launch(spec).await.0, LaunchStage::Start, "{name}");
    }
}
