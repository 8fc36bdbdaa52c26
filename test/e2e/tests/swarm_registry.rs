//! `tepui swarm` and a real registry that asks for a password: login, push, pull, run, create, search. Needs root.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::json;
use tepui_e2e::dockerd::IMAGE;
use tepui_e2e::swarm::{Ran, Swarm, docker_command};
use tepui_e2e::{Http, Registry, registry, wait_for};
use tepui_facilities::{Facility, available};

/// The docker CLI with the logins of a directory.
fn docker(swarm: &Swarm, logins: &Path, arguments: &[&str]) -> Ran {
    let mut command = swarm.manager.command(arguments);
    Ran::of(command.env("DOCKER_CONFIG", logins).output().expect("docker starts"))
}

fn done(swarm: &Swarm, logins: &Path, arguments: &[&str]) -> String {
    let ran = docker(swarm, logins, arguments);
    assert_eq!(ran.code, 0, "docker {arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout.trim().to_owned()
}

fn fails(swarm: &Swarm, logins: &Path, arguments: &[&str], text: &str) {
    let ran = docker(swarm, logins, arguments);
    assert_ne!(ran.code, 0, "docker {arguments:?}: {}", ran.stdout);
    assert!(ran.stderr.contains(text), "docker {arguments:?}: no {text:?} in {}", ran.stderr);
}

/// Engines that have an image of this name.
fn engines_with(swarm: &Swarm, image: &str) -> Vec<usize> {
    let has = |engine: &tepui_e2e::dockerd::Dockerd| {
        let host = format!("unix://{}", engine.socket().display());
        let listed = docker_command(&host, &["images", "-q", image]).output().expect("docker starts").stdout;
        !listed.is_empty()
    };
    swarm.engines.iter().enumerate().filter(|(_, engine)| has(engine)).map(|(at, _)| at).collect()
}

#[test]
fn credentials_of_clients_reach_the_registry_and_no_file() {
    if !available(&[Facility::Docker, Facility::Program("docker-registry")]) {
        return;
    }
    let Some(swarm) = Swarm::start(2, &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    let registry = Registry::start();
    let folder = tempfile::tempdir().expect("a directory");
    let (nobody, user) = (folder.path().join("nobody"), folder.path().join("user"));
    let image = format!("{}/private/web:1", registry.address);
    let login = |password: &str| {
        docker(&swarm, &user, &["login", "-u", registry::USER, "-p", password, &registry.address])
    };
    let rejected = login("wrong");
    assert!(rejected.code != 0 && rejected.stderr.contains("401 Unauthorized"), "{rejected:?}");
    assert!(login(registry::PASSWORD).stdout.contains("Login Succeeded"));

    done(&swarm, &user, &["tag", IMAGE, &image]);
    fails(&swarm, &nobody, &["push", &image], "no basic auth credentials");
    done(&swarm, &user, &["push", &image]);
    done(&swarm, &user, &["push", "--all-tags", &format!("{}/private/web", registry.address)]);
    let forget = || {
        done(&swarm, &user, &["rmi", &image]);
        assert!(engines_with(&swarm, &image).is_empty());
    };
    forget();

    // The engine may not pull it, so the CLI has to; it pulls with its login, or gets the reason.
    let run = ["run", "--rm", "-m", "20m", "--net", "none", &image, "echo", "pulled"];
    fails(&swarm, &nobody, &run, "no basic auth credentials");
    assert_eq!(done(&swarm, &user, &run), "pulled");
    assert_eq!(engines_with(&swarm, &image), [0, 1]);
    forget();
    done(&swarm, &user, &["pull", &image]);
    assert_eq!(engines_with(&swarm, &image), [0, 1]);
    forget();

    create_with_credentials(&swarm, &registry, &image);
    // The registry has no index: its answer is the client's.
    fails(&swarm, &user, &["search", &format!("{}/web", registry.address)], "404");
}

/// A client of the API may send its credentials with the create itself.
fn create_with_credentials(swarm: &Swarm, registry: &Registry, image: &str) {
    let http = Http::new(swarm.manager.host.trim_start_matches("tcp://"));
    let body =
        json!({"Image": image, "Cmd": ["true"], "HostConfig": {"Memory": 20 << 20, "NetworkMode": "none"}})
            .to_string();
    let create = |headers: &[(&str, &str)]| {
        let headers = [&[("content-type", "application/json")], headers].concat();
        http.send("POST", "/v1.41/containers/create?name=private", &headers, body.as_bytes())
    };
    let auth = registry.auth();
    let refused = create(&[]);
    assert_eq!(refused.status, 404, "{}", refused.text());
    assert!(refused.text().contains("No such image"), "{}", refused.text());
    let created = create(&[("x-registry-auth", &auth)]);
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(engines_with(swarm, image).len(), 1, "only where the container is");
    assert!(!swarm.manager.log().contains(&auth), "credentials are in the log");
    let path = format!("/v1.41/distribution/{image}/json");
    assert_ne!(http.get(&path).status, 200);
    let described = http.send("GET", &path, &[("x-registry-auth", &auth)], &[]);
    assert_eq!(described.status, 200, "{}", described.text());
    assert!(described.text().contains("\"digest\":\"sha256:"), "{}", described.text());
    for text in [auth.as_str(), registry::PASSWORD] {
        let found = std::process::Command::new("grep")
            .args(["-rlaF", text])
            .arg(swarm.cluster.folder())
            .output()
            .expect("grep runs");
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "credentials are in files");
    }
}

/// An engine whose pulls the test can hold up; the name of an image that only the registry has.
fn with_absent_image(manage: &[&str]) -> Option<(Swarm, Registry, String)> {
    if !available(&[Facility::Docker, Facility::Program("docker-registry")]) {
        return None;
    }
    let swarm = Swarm::start(1, manage)?;
    let registry = Registry::open();
    let image = format!("{}/web:1", registry.address);
    for line in [format!("tag {IMAGE} {image}"), format!("push {image}"), format!("rmi {image}")] {
        swarm.ok(&line);
    }
    Some((swarm, registry, image))
}

/// Starts a container of an image that the registry does not give yet; returns when its task is launched.
fn run_while_paused(swarm: &Swarm, image: &str) -> Child {
    let arguments = ["run", "-m", "20m", "--net", "none", "--name", "web", image, "echo", "pulled"];
    let mut command = swarm.manager.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("docker starts");
    wait_for("the launch", || {
        let state = swarm.cluster.http().get("/state").json().expect("a state");
        (state["frameworks"][0]["tasks"][0]["name"] == "web").then_some(())
    });
    child
}

#[test]
fn image_pull_does_not_count_towards_the_task_timeout() {
    let Some((swarm, registry, image)) = with_absent_image(&["--cluster-opt=mesos.tasktimeout=1s"]) else {
        return;
    };
    registry.pause();
    let run = run_while_paused(&swarm, &image);
    // Later than that one, and its time is over.
    swarm.fails("create -m 100g --net none busybox true", &["container failed to start after 1s"]);
    registry.resume();
    let ran = Ran::of(run.wait_with_output().expect("docker ends"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "pulled\n"), "{ran:?}");
}

#[test]
fn engine_crash_during_a_pull_fails_the_run_with_a_reason() {
    let Some((mut swarm, registry, image)) = with_absent_image(&["--cluster-opt=mesos.tasktimeout=1m"])
    else {
        return;
    };
    registry.pause();
    let run = run_while_paused(&swarm, &image);
    swarm.engines[0].kill();
    let ran = Ran::of(run.wait_with_output().expect("docker ends"));
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("Docker engine"), "{ran:?}");
    registry.resume();
    swarm.engines[0].restart();
    swarm.wait_for_offers(1);
    assert_eq!(swarm.ok("ps -aq"), "", "nothing is left of it");
    assert_eq!(swarm.ok(&format!("run -m 20m --net none --name web {image} echo again")), "again");
}

#[test]
fn agent_loss_during_a_pull_fails_the_run_with_a_reason() {
    let Some((mut swarm, registry, image)) = with_absent_image(&["--cluster-opt=mesos.tasktimeout=1s"])
    else {
        return;
    };
    registry.pause();
    let run = run_while_paused(&swarm, &image);
    let agents = swarm.cluster.http().get("/slaves").json().expect("agents");
    swarm.cluster.agents[0].kill();
    let gone = json!({"agent_id": {"value": agents["slaves"][0]["id"]}});
    let answer =
        swarm.cluster.http().post("/api/v1", &json!({"type": "MARK_AGENT_GONE", "mark_agent_gone": gone}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let ran = Ran::of(run.wait_with_output().expect("docker ends"));
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("Agent was marked gone by an operator"), "{ran:?}");
    // Its name is free: the next one only finds no node.
    swarm.fails("create -m 20m --net none --name web busybox true", &["container failed to start after 1s"]);
    assert_eq!(swarm.ok("ps -aq"), "");
    registry.resume();
}
