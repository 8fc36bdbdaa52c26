//! An image for agents that take images from a directory (`--docker_registry`).

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Commands of busybox in the image.
const COMMANDS: &str = "sh cat ls id pwd sleep echo test stty";

/// Writes `NAME.tar` as `docker save` would. Needs a static busybox.
pub fn save_image(dir: &Path, name: &str, config: &Value) {
    let work = dir.join("work");
    std::fs::create_dir_all(work.join("save/layer")).expect("made");
    sh(
        &work,
        &format!(
            "mkdir -p root/bin root/etc; cp /bin/busybox root/bin/busybox; for n in {COMMANDS}; do ln -s busybox root/bin/$n; done; \
        echo of the image > root/etc/of; printf 'root:x:0:0::/:/bin/sh\\nweb:x:4321:4321::/:/bin/sh\\n' > root/etc/passwd; \
        tar -c -f save/layer/layer.tar -C root ."
        ),
    );
    let layer = sh(&work, "sha256sum save/layer/layer.tar | cut -d' ' -f1");
    let rootfs = json!({"type": "layers", "diff_ids": [format!("sha256:{layer}")]});
    let config = json!({"os": "linux", "architecture": "amd64", "rootfs": rootfs, "config": config});
    std::fs::write(work.join("config"), config.to_string()).expect("written");
    let file = sh(&work, "n=$(sha256sum config | cut -d' ' -f1).json; mv config save/$n; echo $n");
    let tags = [format!("{name}:latest")];
    let manifest = json!([{"Config": file, "RepoTags": tags, "Layers": ["layer/layer.tar"]}]);
    std::fs::write(work.join("save/manifest.json"), manifest.to_string()).expect("written");
    sh(&work, &format!("tar -c -f ../{name}.tar -C save ."));
}

/// The output of a shell script that works.
fn sh(dir: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(dir).output().expect("a shell");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}
