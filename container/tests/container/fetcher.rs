//! Fetching for real: files, a web server, archives, the cache, users and bad input.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::server::{Server, fixtures, hanging, ok, raw, redirect, tls};
use crate::common::{Host, exited, until};
use tepui_facilities::{Facility, available};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::command_info::URI;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchSpec, LaunchStage};

fn id(value: &str) -> ContainerId {
    ContainerId::root(value)
}

fn uri(value: impl Into<String>) -> URI {
    URI { value: value.into(), ..Default::default() }
}

fn cached(value: impl Into<String>) -> URI {
    URI { cache: Some(true), ..uri(value) }
}

fn spec(host: &Host, name: &str, uris: Vec<URI>) -> LaunchSpec {
    let mut spec = host.spec(&id(name), "true");
    spec.command.uris = uris;
    spec
}

async fn fetch(host: &mut Host, name: &str, uris: Vec<URI>) {
    let spec = spec(host, name, uris);
    assert_eq!(host.run(spec).await, exited(0));
}

/// The reason a fetch fails; it also stands in the sandbox.
async fn failure(host: &mut Host, name: &str, uri: URI) -> String {
    let spec = spec(host, name, vec![uri]);
    let (stage, message) = host.fail_to_launch(spec).await;
    assert_eq!(stage, LaunchStage::Fetch);
    let prefix = format!("Failed to fetch all URIs for container '{name}': ");
    let why = message.strip_prefix(&prefix).unwrap_or_else(|| panic!("{message}")).to_owned();
    assert!(host.read(&id(name), "stderr").contains(&why));
    why
}

#[tokio::test]
async fn local_files_are_copied_with_their_modes() {
    let mut host =
        Host::with(|options| options.frameworks_home = Some(options.work_dir.with_file_name("home")));
    let home = host.dir.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("tool"), "#!/bin/sh\necho ran\n").unwrap();
    let path = home.join("tool").display().to_string();
    let executable = URI { executable: Some(true), output_file: Some(String::from("bin/run")), ..uri(&path) };
    let mut spec = host.spec(&id("a"), "./bin/run");
    spec.command.uris = vec![uri(format!("file://{path}")), executable, uri("tool")];
    assert_eq!(host.run(spec).await, exited(0));
    assert_eq!(host.read(&id("a"), "stdout"), "ran\n");
    assert_eq!(host.read(&id("a"), "tool"), "#!/bin/sh\necho ran\n");
    let mode = |file| host.sandbox(&id("a")).join(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("bin/run"), mode("tool")), (0o755, 0o644));
}

#[tokio::test]
async fn invalid_or_missing_uris_fail_the_launch_with_a_reason() {
    let mut host = Host::new();
    let outside = |output: &str| URI { output_file: Some(output.to_owned()), ..uri("/etc/passwd") };
    for (name, uri, why) in [
        (
            "a",
            uri("/no/such/file"),
            "Failed to fetch '/no/such/file': cannot read '/no/such/file': No such file",
        ),
        ("b", uri("/etc"), "Failed to fetch '/etc': '/etc' is not a file"),
        ("c", uri("relative"), "Failed to fetch 'relative': a relative path needs"),
        ("d", uri("ftp://h/x"), "Failed to fetch 'ftp://h/x': scheme 'ftp' is not supported"),
        ("e", outside("../x"), "Failed to fetch '/etc/passwd': 'output_file' must be relative"),
        ("f", outside("/x"), "Failed to fetch '/etc/passwd': 'output_file' must be relative"),
    ] {
        let told = failure(&mut host, name, uri).await;
        assert!(told.starts_with(why), "{told}");
    }
    assert!(!host.work_dir().join("containers/x").exists());
}

#[tokio::test]
async fn http_downloads_follow_redirects_and_chunks() {
    let pages = [
        ("/file?x=1", ok(b"hello")),
        ("/chunked", raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\nabc\n2\nde\n0\n\n")),
        ("/moved", redirect("/file?x=1")),
    ];
    let server = Server::start(pages, None).await;
    let mut host = Host::new();
    let named = URI { output_file: Some(String::from("sub/dir/named")), ..uri(server.url("/moved")) };
    fetch(&mut host, "a", vec![uri(server.url("/file?x=1")), uri(server.url("/chunked")), named]).await;
    assert_eq!(host.read(&id("a"), "file?x=1"), "hello");
    assert_eq!(host.read(&id("a"), "chunked"), "abcde");
    assert_eq!(host.read(&id("a"), "sub/dir/named"), "hello");
    let heads = server.requests.lock().unwrap().clone();
    let port = server.base.rsplit_once(':').unwrap().1;
    assert!(heads[0].to_lowercase().contains(&format!("\r\nhost: localhost:{port}\r\n")), "{}", heads[0]);

    let with_login = server.url("/chunked").replace("://", "://me:secret@");
    fetch(&mut host, "b", vec![uri(with_login)]).await;
    let head = server.requests.lock().unwrap().last().unwrap().clone();
    assert!(head.contains("Basic bWU6c2VjcmV0"), "{head}");
}

#[tokio::test]
async fn failing_servers_are_reported_with_the_cause() {
    let pages = [
        ("/loop", redirect("/loop")),
        ("/local", redirect("file:///etc/passwd")),
        ("/short", raw("HTTP/1.1 200 OK\nContent-Length: 10\n\nabc")),
        ("/stalls", hanging("HTTP/1.1 200 OK\nContent-Length: 10\n\nabc")),
        ("/silent", hanging("")),
        ("/garbage", raw("what?\n\n")),
        ("/empty", raw("HTTP/1.1 204 No Content\n\n")),
    ];
    let server = Server::start(pages, None).await;
    let mut patient = Host::new();
    let mut impatient = Host::with(|options| options.fetcher_stall_timeout = Duration::from_millis(300));
    for (path, why) in [
        ("/missing", "the server answered 404 Not Found"),
        ("/empty", "the server answered 204 No Content"),
        ("/loop", "it is redirected more than 20 times"),
        ("/local", "it is redirected to an unusable place"),
        ("/short", "the download broke off"),
        ("/stalls", "no data for 0.3 seconds"),
        ("/silent", "no data for 0.3 seconds"),
        ("/garbage", "cannot reach 'localhost:"),
    ] {
        // On a busy machine a good answer may take longer than a short timeout.
        let host = if why.starts_with("no data") { &mut impatient } else { &mut patient };
        let told = failure(host, &path[1..], uri(server.url(path))).await;
        assert!(told.starts_with(&format!("Failed to fetch '{}': {why}", server.url(path))), "{told}");
    }
    // Bound, so that no other process gets the port, but without a listener.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://127.0.0.1:{}/x", nobody.local_addr().unwrap().port());
    let told = failure(&mut patient, "nobody", uri(url)).await;
    assert!(told.contains("Connection refused"), "{told}");
}

#[tokio::test]
async fn https_downloads_require_a_trusted_certificate() {
    let server = Server::start([("/file", ok(b"secret"))], Some(tls())).await;
    // The environment of this process belongs to all tests, so a script stands for an agent with another one.
    let helper = env!("CARGO_BIN_EXE_container-helper");
    let mut host = Host::with(|options| {
        let script = options.work_dir.with_file_name("program");
        let ca = fixtures().join("ca.pem");
        std::fs::write(
            &script,
            format!("#!/bin/sh\nSSL_CERT_FILE='{}' exec '{helper}' \"$@\"\n", ca.display()),
        )
        .unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        options.program = script;
    });
    fetch(&mut host, "a", vec![uri(server.url("/file"))]).await;
    assert_eq!(host.read(&id("a"), "file"), "secret");
    let mut host = Host::new();
    let told = failure(&mut host, "b", uri(server.url("/file"))).await;
    assert!(told.contains("certificate"), "{told}");
}

/// Makes an archive that holds one file, fetches it with and without the cache, and reads the file.
async fn extract(name: &str, script: &str, programs: &[&'static str]) {
    let programs: Vec<Facility> = programs.iter().map(|program| Facility::Program(program)).collect();
    if !available(&programs) {
        return;
    }
    let mut host = Host::with(|options| options.fetcher_cache_size_bytes = 1 << 20);
    std::fs::write(host.dir.path().join("inner"), "content").unwrap();
    let made = Command::new("sh").args(["-c", script]).current_dir(host.dir.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    for (container, cache) in [("plain", false), ("cached", true)] {
        let path = host.dir.path().join(name).display().to_string();
        fetch(&mut host, container, vec![URI { cache: Some(cache), ..uri(path) }]).await;
        assert_eq!(host.read(&id(container), "inner"), "content", "{name} {container}");
    }
    assert!(host.sandbox(&id("plain")).join(name).exists(), "the archive is kept");
    assert!(!host.sandbox(&id("cached")).join(name).exists(), "the archive stays in the cache");
}

#[tokio::test]
async fn archives_are_extracted() {
    extract("a.tar", "tar -cf a.tar inner", &["tar"]).await;
    extract("b.tgz", "tar -czf b.tgz inner", &["tar", "gzip"]).await;
    extract("inner.gz", "gzip inner", &["gzip", "gunzip"]).await;
}

#[tokio::test]
async fn archives_of_bzip2_are_extracted() {
    extract("c.tar.bz2", "tar -cjf c.tar.bz2 inner", &["tar", "bzip2"]).await;
}

#[tokio::test]
async fn archives_of_xz_are_extracted() {
    extract("d.txz", "tar -cJf d.txz inner", &["tar", "xz"]).await;
}

fn disk(mb: f64) -> pb::Resource {
    pb::Resource {
        name: String::from("disk"),
        r#type: pb::value::Type::SCALAR,
        scalar: pb::value::Scalar { value: mb, ..Default::default() }.into(),
        ..Default::default()
    }
}

/// Fetches what does not fit; the reason, and what is in the sandbox then.
async fn overflow(host: &mut Host, name: &str, uri: URI, resources: Vec<pb::Resource>) -> (String, u64) {
    let mut spec = spec(host, name, vec![uri]);
    spec.resources = resources;
    let (stage, message) = host.fail_to_launch(spec).await;
    assert_eq!(stage, LaunchStage::Fetch, "{message}");
    let used = Command::new("du").arg("-sk").arg(host.sandbox(&id(name))).output().unwrap();
    let used = String::from_utf8(used.stdout).unwrap();
    (message, used.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024)
}

const MB: u64 = 1 << 20;

#[tokio::test]
async fn an_archive_unpacks_within_the_disk_of_its_container() {
    if !available(&["tar", "gzip", "gunzip", "du"].map(Facility::Program)) {
        return;
    }
    let mut host = Host::with(|options| options.fetcher_sandbox_bytes_max = 16 * MB);
    let made = "head -c 200M /dev/zero > one; tar -czf one.tgz one; gzip -c one > two.gz; rm one
        mkdir many; for i in $(seq 400); do head -c 256K /dev/zero > many/$i; done; tar -czf many.tgz many; rm -r many
        head -c 4M /dev/zero > small; tar -czf small.tgz small";
    let made = Command::new("sh").args(["-c", made]).current_dir(host.dir.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let at = |host: &Host, name: &str| host.dir.path().join(name).display().to_string();
    let own = "the sandbox would hold more than the container's disk of 8388608 bytes";
    let agents = "the sandbox would hold more than 16777216 bytes (--fetcher_max_size of the agent)";
    for archive in ["one.tgz", "two.gz", "many.tgz"] {
        for cache in [false, true] {
            let uri = URI { cache: Some(cache), ..uri(at(&host, archive)) };
            let name = format!("{}-{cache}", archive.replace('.', "-"));
            let (message, used) = overflow(&mut host, &name, uri, vec![disk(8.0)]).await;
            assert!(message.ends_with(own), "{message}");
            // What is written between two looks at the sandbox comes on top.
            assert!(used < 8 * MB + 100 * MB, "{archive}: {used}");
        }
    }
    let bomb = uri(at(&host, "one.tgz"));
    let (message, used) = overflow(&mut host, "diskless", bomb, vec![]).await;
    assert!(message.ends_with(agents) && used <= 17 * MB, "{message}: {used}");
    let mut fits = spec(&host, "fits", vec![uri(at(&host, "small.tgz"))]);
    fits.resources = vec![disk(8.0)];
    assert_eq!(host.run(fits).await, exited(0));
}

#[tokio::test]
async fn a_download_stays_within_the_disk_of_its_container() {
    let server = Server::start([("/file", ok(&vec![7; 3 << 20]))], None).await;
    let mut host = Host::new();
    let (message, used) = overflow(&mut host, "a", uri(server.url("/file")), vec![disk(2.0)]).await;
    assert!(
        message.ends_with("the container's disk of 2097152 bytes") && used <= 2 * MB,
        "{message}: {used}"
    );
    let local = host.dir.path().join("local");
    std::fs::write(&local, vec![7; 3 << 20]).unwrap();
    let (message, _) = overflow(&mut host, "b", uri(local.display().to_string()), vec![disk(2.0)]).await;
    assert!(message.ends_with("the container's disk of 2097152 bytes"), "{message}");
}

#[tokio::test]
async fn archives_of_zip_are_extracted() {
    extract("e.zip", "python3 -m zipfile -c e.zip inner", &["unzip", "python3"]).await;
}

#[tokio::test]
async fn archives_are_kept_without_extract_or_with_executable() {
    if !available(&[Facility::Program("tar"), Facility::Program("gzip")]) {
        return;
    }
    let mut host = Host::new();
    let made = "echo content > inner; tar -czf b.tgz inner";
    let made = Command::new("sh").args(["-c", made]).current_dir(host.dir.path()).status();
    assert!(made.unwrap().success());
    let path = host.dir.path().join("b.tgz").display().to_string();
    fetch(&mut host, "no", vec![URI { extract: Some(false), ..uri(&path) }]).await;
    fetch(&mut host, "exe", vec![URI { executable: Some(true), ..uri(&path) }]).await;
    for container in ["no", "exe"] {
        assert!(host.sandbox(&id(container)).join("b.tgz").exists());
        assert!(!host.sandbox(&id(container)).join("inner").exists());
    }
}

#[tokio::test]
async fn corrupt_archive_fails_the_fetch() {
    if !available(&[Facility::Program("tar")]) {
        return;
    }
    let mut host = Host::new();
    let path = host.dir.path().join("broken.tar.gz");
    std::fs::write(&path, "this is no archive").unwrap();
    let told = failure(&mut host, "a", uri(path.display().to_string())).await;
    assert!(told.contains("cannot extract it: 'tar' exited with exit status"), "{told}");
    assert!(host.read(&id("a"), "stderr").contains("tar:"), "the tool's own words are in the sandbox");
}

#[tokio::test]
async fn missing_extraction_tool_is_named_in_the_error() {
    let helper = env!("CARGO_BIN_EXE_container-helper");
    let mut host = Host::with(|options| {
        let script = options.work_dir.with_file_name("program");
        std::fs::write(&script, format!("#!/bin/sh\nPATH=/nowhere exec '{helper}' \"$@\"\n")).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        options.program = script;
    });
    let path = host.dir.path().join("x.zip");
    std::fs::write(&path, "").unwrap();
    let told = failure(&mut host, "a", uri(path.display().to_string())).await;
    assert!(told.ends_with("cannot extract it: 'unzip' is not installed on this agent"), "{told}");
}

#[tokio::test]
async fn cached_files_are_downloaded_once() {
    let server = Server::start([("/file", ok(b"hello")), ("/large", ok(&[b'x'; 2000]))], None).await;
    let mut host = Host::new();
    for name in ["a", "b"] {
        fetch(&mut host, name, vec![cached(server.url("/file")), cached(server.url("/large"))]).await;
        assert_eq!(host.read(&id(name), "file"), "hello");
        assert_eq!(host.read(&id(name), "large").len(), 2000);
    }
    assert_eq!(server.count("/file"), 1);
    // Larger than the cache: tried, refused by its length, and then fetched past the cache, each time.
    assert_eq!(server.count("/large"), 4);
    fetch(&mut host, "c", vec![uri(server.url("/file"))]).await;
    assert_eq!(server.count("/file"), 2, "only who asks for the cache gets it");
    let mut host = host.restart();
    fetch(&mut host, "d", vec![cached(server.url("/file"))]).await;
    assert_eq!(server.count("/file"), 3, "emptied at the start");
}

#[tokio::test]
async fn concurrent_containers_share_one_download() {
    let server = Server::start([("/file", ok(b"hello"))], None).await;
    let mut host = Host::new();
    for n in 0..10 {
        let spec = spec(&host, &format!("c{n}"), vec![cached(server.url("/file"))]);
        host.submit(ContainerOp::Launch(Box::new(spec)));
    }
    let mut ended = 0;
    while ended < 10 {
        match host.event().await {
            ContainerEvent::Launched { .. } => (),
            ContainerEvent::Exited { id, .. } => {
                assert_eq!(host.read(&id, "file"), "hello");
                ended += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(server.count("/file"), 1);
}

#[tokio::test]
async fn destroy_cancels_the_fetch() {
    let server =
        Server::start([("/stalls", hanging("HTTP/1.1 200 OK\nContent-Length: 10\n\nabc"))], None).await;
    let mut host = Host::new();
    for (before, name, uri) in [(0, "a", uri(server.url("/stalls"))), (1, "b", cached(server.url("/stalls")))]
    {
        host.submit(ContainerOp::Launch(Box::new(spec(&host, name, vec![uri]))));
        until(|| (server.count("/stalls") > before).then_some(())).await;
        host.submit(ContainerOp::Destroy { id: id(name) });
        let message = String::from("Container destroyed while fetching");
        let event = ContainerEvent::LaunchFailed { id: id(name), stage: LaunchStage::Fetch, message };
        assert_eq!(host.event().await, event);
        until(|| (server.given_up.load(Ordering::SeqCst) > before).then_some(())).await;
    }
}

#[tokio::test]
async fn local_files_are_fetched_with_the_permissions_of_the_user() {
    if !available(&[Facility::Root, Facility::Program("tar")]) {
        return;
    }
    let mut host = Host::with(|options| options.fetcher_cache_size_bytes = 1 << 20);
    let secret = host.dir.path().join("secret");
    std::fs::write(&secret, "root only").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    let public = host.dir.path().join("public.tar");
    std::fs::write(host.dir.path().join("inner"), "x").unwrap();
    let made = Command::new("tar")
        .arg("-cf")
        .arg(&public)
        .arg("inner")
        .current_dir(host.dir.path())
        .status()
        .unwrap();
    assert!(made.success());
    let mut spec = spec(&host, "a", vec![uri(secret.display().to_string())]);
    spec.user = Some(String::from("nobody"));
    let (stage, message) = host.fail_to_launch(spec.clone()).await;
    assert!(stage == LaunchStage::Fetch && message.contains("Permission denied"), "{message}");

    spec = self::spec(&host, "b", vec![uri(public.display().to_string()), cached("/etc/passwd")]);
    spec.user = Some(String::from("nobody"));
    assert_eq!(host.run(spec).await, exited(0));
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap().uid.as_raw();
    for file in ["public.tar", "inner", "passwd"] {
        assert_eq!(host.sandbox(&id("b")).join(file).metadata().unwrap().uid(), nobody, "{file}");
    }
}

#[tokio::test]
async fn symlink_in_an_archive_cannot_redirect_a_later_download() {
    if !available(&[Facility::Root, Facility::Program("tar")]) {
        return;
    }
    let mut host = Host::new();
    let (victim, evil) = (host.dir.path().join("victim"), host.dir.path().join("evil"));
    std::fs::create_dir_all(&victim).unwrap();
    std::fs::create_dir_all(&evil).unwrap();
    std::os::unix::fs::symlink(&victim, evil.join("link")).unwrap();
    let tar = host.dir.path().join("evil.tar");
    assert!(
        Command::new("tar").arg("-cf").arg(&tar).arg("link").current_dir(&evil).status().unwrap().success()
    );
    let through = URI { output_file: Some(String::from("link/planted")), ..uri("/etc/passwd") };
    let mut spec = spec(&host, "a", vec![uri(tar.display().to_string()), through]);
    spec.user = Some(String::from("nobody"));
    assert_eq!(host.fail_to_launch(spec).await.0, LaunchStage::Fetch);
    assert!(!victim.join("planted").exists());
}
