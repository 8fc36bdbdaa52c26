//! Volumes of Docker's volume drivers: a driver made for the test, real containers.

use std::time::Duration;

use crate::common::plugin::{self, Greets, Plugin};
use crate::common::{Host, exited, until};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, ContainerOp, LaunchSpec};

fn id(name: &str) -> ContainerId {
    ContainerId::root(name)
}

/// A driver that has as much time as a busy machine may take.
fn host() -> Option<(Host, Plugin)> {
    plugin::host(Duration::from_secs(600))
}

/// One whose answers are not waited for.
fn impatient_host() -> Option<(Host, Plugin)> {
    plugin::host(Duration::from_secs(1))
}

fn with_volumes(volumes: &[&str]) -> Option<pb::ContainerInfo> {
    let one = |text: &&str| {
        let (name, mode) = text.split_once(' ').unwrap_or((text, "RW"));
        let (driver, name) = name.split_once('/').unwrap_or(("disk", name));
        let options = r#""driver_options":{"parameter":[{"key":"size","value":"7"}]}"#;
        format!(
            r#"{{"mode":"{mode}","container_path":"{name}","source":{{"type":"DOCKER_VOLUME","docker_volume":{{"driver":"{driver}","name":"{name}",{options}}}}}}}"#
        )
    };
    let volumes: Vec<String> = volumes.iter().map(one).collect();
    let text = format!(r#"{{"type":"MESOS","volumes":[{}]}}"#, volumes.join(","));
    Some(tepui_proto::json::from_slice(text.as_bytes()).unwrap())
}

fn kept(host: &Host) -> usize {
    let dir = host.dir.path().join("run/isolators/docker/volume/containers");
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

#[tokio::test]
async fn shared_volume_is_mounted_once_and_unmounted_after_its_last_user() {
    let Some((mut host, plugin)) = host() else { return };
    let wait = "touch data/$0; until [ -e go ]; do sleep 0.01; done; ! touch log/x 2>/dev/null";
    for name in ["a", "b"] {
        let container = with_volumes(&["data", "log RO"]);
        let user = Some(String::from("nobody"));
        let script = wait.replace("$0", name);
        host.launch(LaunchSpec { container, user, ..host.spec(&id(name), &script) }).await;
    }
    let size = r#"{"size":"7"}"#;
    let expected = [
        format!("Create data {size}"),
        "Mount data".into(),
        format!("Create log {size}"),
        "Mount log".into(),
    ];
    assert_eq!(plugin.calls(), expected);
    for name in ["a", "b"] {
        until(|| plugin.path("data").join(name).exists().then_some(())).await;
    }
    // The next agent knows who uses what.
    let mut host = host.restart();
    host.recover(&[&id("a"), &id("b")]).await;
    let go = |host: &Host, name: &str| std::fs::write(host.sandbox(&id(name)).join("go"), "").unwrap();
    go(&host, "a");
    assert_eq!(host.exit_of(&id("a")).await.status, exited(0));
    assert_eq!(plugin.calls(), Vec::<String>::new(), "somebody still uses both");
    let container = with_volumes(&["data"]);
    assert_eq!(host.run(LaunchSpec { container, ..host.spec(&id("c"), "[ -e data/a ]") }).await, exited(0));
    assert_eq!(plugin.calls(), Vec::<String>::new(), "it is mounted already");
    go(&host, "b");
    assert_eq!(host.exit_of(&id("b")).await.status, exited(0));
    assert_eq!(plugin.calls(), ["Unmount data", "Unmount log"]);
    assert_eq!(kept(&host), 0);
    // A volume that is there already is used as it is.
    let container = with_volumes(&["data"]);
    assert_eq!(host.run(LaunchSpec { container, ..host.spec(&id("d"), "[ -e data/b ]") }).await, exited(0));
    assert_eq!(
        plugin.calls(),
        [format!("Create data {size}"), "Path data".into(), "Mount data".into(), "Unmount data".into()]
    );
}

#[tokio::test]
async fn driver_error_or_timeout_fails_the_launch() {
    let Some((mut host, _plugin)) = impatient_host() else { return };
    let spec = LaunchSpec { container: with_volumes(&["hanging-1"]), ..host.spec(&id("a"), "true") };
    let (_, message) = host.fail_to_launch(spec).await;
    let why =
        "the volume 'hanging-1' of the driver 'disk': it did not answer VolumeDriver.Mount within 1 seconds";
    assert!(message.contains(why), "{message}");
    assert_eq!(kept(&host), 0, "{why}");

    let Some((mut host, plugin)) = self::host() else { return };
    for (volumes, why) in [
        (&["refused-1"][..], "the volume 'refused-1' of the driver 'disk': no room for another volume"),
        (&["other/data"], "the volume 'data' of the driver 'other': no such driver in"),
        (&["../data"], "'..' cannot be the name of a driver"),
        (&["data", "data"], "volumes[1] 'data': a volume of a driver can be used once in a container"),
        (&["fine", "refused-2"], "no room for another volume"),
    ] {
        let spec = LaunchSpec { container: with_volumes(volumes), ..host.spec(&id("a"), "true") };
        let (_, message) = host.fail_to_launch(spec).await;
        assert!(message.contains(why), "{message}");
        assert_eq!(kept(&host), 0, "{why}");
    }
    assert!(plugin.calls().contains(&String::from("Unmount fine")), "what was mounted before is unmounted");
}

#[tokio::test]
async fn restarted_agent_unmounts_orphaned_volumes() {
    let Some((mut host, plugin)) = host() else { return };
    for name in ["orphan", "stuck-1"] {
        let spec = LaunchSpec { container: with_volumes(&[name]), ..host.spec(&id(name), "exec sleep 1000") };
        host.launch(spec).await;
    }
    // One whose agent died before the driver was asked.
    let dir = host.dir.path().join("run/isolators/docker/volume/containers/lost");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("volumes"), r#"{"volumes":[{"driver":"disk","name":"never"}]}"#).unwrap();
    plugin.calls();
    let mut host = host.restart();
    host.recover(&[]).await;
    let mut calls = Vec::new();
    until(|| {
        calls.extend(plugin.calls());
        (calls.len() == 3 && kept(&host) == 1).then_some(())
    })
    .await;
    calls.sort();
    assert_eq!(calls, ["Unmount never", "Unmount orphan", "Unmount stuck-1"]);
    // What could not be unmounted is not forgotten.
    let mut host = host.restart();
    host.recover(&[]).await;
    until(|| plugin.calls().contains(&String::from("Unmount stuck-1")).then_some(())).await;
    host.submit(ContainerOp::Destroy { id: id("stuck-1") });
}

/// Every driver is asked what it is and what it can do; one that does not know the second question works all the same.
#[tokio::test]
async fn driver_capabilities_are_queried_and_optional() {
    let Some((mut host, plugin)) = host() else { return };
    for how in [Greets::Well, Greets::AsOfOld] {
        plugin.greet(how);
        let container = with_volumes(&["data"]);
        let spec = LaunchSpec { container, ..host.spec(&id(&format!("{how:?}")), "touch data/x") };
        assert_eq!(host.run(spec).await, exited(0));
        assert_eq!(plugin.greetings()[..2], ["Activate", "Capabilities"], "{how:?}");
    }
    let Some((mut host, plugin)) = impatient_host() else { return };
    plugin.greet(Greets::Never);
    let spec = LaunchSpec { container: with_volumes(&["data"]), ..host.spec(&id("never"), "true") };
    let (_, message) = host.fail_to_launch(spec).await;
    let why = "the driver 'disk': it did not answer VolumeDriver.Capabilities within 1 seconds";
    assert!(message.contains(why), "{message}");
    assert_eq!(plugin.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn drivers_are_found_by_spec_and_json_files() {
    let Some((mut host, plugin)) = host() else { return };
    let dir = host.dir.path().join("plugins");
    std::fs::write(dir.join("by-spec.spec"), format!("unix://{}\n", dir.join("disk.sock").display()))
        .unwrap();
    let document = format!(r#"{{"Name":"by-port","Addr":"http://{}"}}"#, plugin.listen());
    std::fs::write(dir.join("by-port.json"), document).unwrap();
    for driver in ["by-spec", "by-port"] {
        let container = with_volumes(&[&format!("{driver}/{driver}")]);
        let script = format!("echo kept > {driver}/file");
        assert_eq!(host.run(LaunchSpec { container, ..host.spec(&id(driver), &script) }).await, exited(0));
        assert_eq!(std::fs::read_to_string(plugin.path(driver).join("file")).unwrap(), "kept\n");
        let size = r#"{"size":"7"}"#;
        let expected =
            [format!("Create {driver} {size}"), format!("Mount {driver}"), format!("Unmount {driver}")];
        assert_eq!(plugin.calls(), expected);
    }
}

#[test]
fn drivers_are_listed_by_their_files() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["b.sock", "a.spec", "c.json", "b.json", "note.txt", "plain"] {
        std::fs::write(dir.path().join(file), "").unwrap();
    }
    let options = tepui_container::DockerVolumeOptions {
        plugin_dirs: vec![dir.path().join("none"), dir.path().to_owned()],
        ..Default::default()
    };
    assert_eq!(options.drivers(), ["a", "b", "c"]);
}
