//! Images for tests, made of the host's static busybox.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tepui_container::{Backend, Options};
use tepui_facilities::{Facility, available};
use tepui_proto::mesos::v1 as pb;

use super::Host;

/// A host with the directory `images` as its registry.
pub fn host(isolation: &str, backend: Backend, change: impl FnOnce(&mut Options)) -> Option<Host> {
    Host::linux_with(isolation, |options| {
        let dir = options.work_dir.parent().unwrap().to_owned();
        options.images.docker = true;
        options.images.docker_registry = dir.join("images").display().to_string();
        options.images.docker_store_dir = dir.join("store");
        options.images.backend = Some(backend);
        change(options);
    })
}

pub fn with_image(name: &str) -> Option<pb::ContainerInfo> {
    let image =
        format!(r#"{{"type":"MESOS","mesos":{{"image":{{"type":"DOCKER","docker":{{"name":"{name}"}}}}}}}}"#);
    Some(tepui_proto::json::from_slice(image.as_bytes()).unwrap())
}

/// The tree of a layer.
pub struct Layer(tempfile::TempDir);

impl Layer {
    pub fn empty() -> Layer {
        Layer(tempfile::tempdir().unwrap())
    }

    /// A small system. `None`: recorded as skipped.
    pub fn busybox() -> Option<Layer> {
        let layer = Layer::empty();
        if !available(&[Facility::Busybox, Facility::Program("tar")]) {
            return None;
        }
        std::fs::create_dir_all(layer.path("bin")).unwrap();
        std::fs::copy("/bin/busybox", layer.path("bin/busybox")).unwrap();
        for name in [
            "sh", "cat", "ls", "id", "env", "pwd", "echo", "sleep", "touch", "rm", "test", "stat", "grep",
            "tr", "head", "sort",
        ] {
            std::os::unix::fs::symlink("busybox", layer.path(&format!("bin/{name}"))).unwrap();
        }
        Some(layer.file("etc/passwd", "root:x:0:0::/:/bin/sh\n").file("etc/group", "root:x:0:\n"))
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub fn file(self, path: &str, text: &str) -> Layer {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), text).unwrap();
        self
    }

    pub fn tar(&self) -> Vec<u8> {
        let output =
            Command::new("tar").args(["-c", "--numeric-owner", "-C"]).arg(self.0.path()).arg(".").output();
        output.unwrap().stdout
    }
}

fn hex(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn config(runtime: &Value, layers: &[Vec<u8>]) -> Vec<u8> {
    let diff_ids: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", hex(layer))).collect();
    let config = json!({"os": "linux", "architecture": "amd64", "config": runtime,
        "rootfs": {"type": "layers", "diff_ids": diff_ids}});
    config.to_string().into_bytes()
}

/// As `docker save` writes it.
pub fn docker_archive(dir: &Path, name: &str, runtime: &Value, layers: &[Vec<u8>]) {
    let files = tempfile::tempdir().unwrap();
    let config = config(runtime, layers);
    let config_name = format!("{}.json", hex(&config));
    std::fs::write(files.path().join(&config_name), &config).unwrap();
    let mut paths = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        std::fs::create_dir(files.path().join(index.to_string())).unwrap();
        std::fs::write(files.path().join(format!("{index}/layer.tar")), layer).unwrap();
        paths.push(format!("{index}/layer.tar"));
    }
    let manifest = json!([{"Config": config_name, "RepoTags": [name], "Layers": paths}]);
    std::fs::write(files.path().join("manifest.json"), manifest.to_string()).unwrap();
    pack(files.path(), &dir.join(format!("{name}.tar")));
}

/// With layers compressed in turns by gzip and zstd, and an index by platform.
pub fn oci_layout(dir: &Path, runtime: &Value, layers: &[Vec<u8>]) {
    let blobs = dir.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8], kind: &str| {
        std::fs::write(blobs.join(hex(bytes)), bytes).unwrap();
        json!({"mediaType": format!("application/vnd.oci.image.{kind}"), "digest": format!("sha256:{}", hex(bytes)), "size": bytes.len()})
    };
    let small = |(index, layer): (usize, &Vec<u8>)| match index % 2 {
        0 => put(&gzip(layer), "layer.v1.tar+gzip"),
        _ => put(&zstd(layer), "layer.v1.tar+zstd"),
    };
    let small: Vec<Value> = layers.iter().enumerate().map(small).collect();
    let config = put(&config(runtime, layers), "config.v1+json");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": small});
    let mut manifest = put(manifest.to_string().as_bytes(), "manifest.v1+json");
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    manifest["platform"] = json!({"os": "linux", "architecture": architecture});
    let mut other = put(b"{}", "manifest.v1+json");
    other["platform"] = json!({"os": "plan9", "architecture": architecture});
    let nested = json!({"schemaVersion": 2, "manifests": [other, manifest]});
    let mut nested = put(nested.to_string().as_bytes(), "index.v1+json");
    nested["annotations"] = json!({"org.opencontainers.image.ref.name": "latest"});
    let index = json!({"schemaVersion": 2, "manifests": [nested]});
    std::fs::write(dir.join("index.json"), index.to_string()).unwrap();
    std::fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
}

/// A layout in one file.
pub fn oci_archive(dir: &Path, name: &str, runtime: &Value, layers: &[Vec<u8>]) {
    let files = tempfile::tempdir().unwrap();
    oci_layout(files.path(), runtime, layers);
    pack(files.path(), &dir.join(format!("{name}.tar")));
}

fn pack(files: &Path, archive: &Path) {
    std::fs::create_dir_all(archive.parent().unwrap()).unwrap();
    let status = Command::new("tar").args(["-c", "-C"]).arg(files).arg("-f").arg(archive).arg(".").status();
    assert!(status.unwrap().success());
}
