//! `--image_gc_config`: when images that no container uses are removed.

use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use tepui_proto::mesos::v1::Image;
use tepui_shell_agent::ImageGc;

use super::access;

/// As v1 has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    image_disk_headroom: f64,
    image_disk_watch_interval: Interval,
    excluded_images: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Interval {
    nanoseconds: u64,
}

impl Default for Document {
    fn default() -> Self {
        let interval = Interval { nanoseconds: 3_600_000_000_000 };
        Self { image_disk_headroom: 0.1, image_disk_watch_interval: interval, excluded_images: Vec::new() }
    }
}

/// The value of the flag, as JSON or a file.
pub fn parse(text: &str) -> Result<ImageGc> {
    let text = access::json_or_file("image_gc_config", text)?;
    read(&text).map_err(|reason| anyhow!("--image_gc_config: {reason}"))
}

fn read(text: &[u8]) -> Result<ImageGc> {
    let document: Document = serde_json::from_slice(text)?;
    let headroom = document.image_disk_headroom;
    if !(0.0..=1.0).contains(&headroom) {
        bail!("image_disk_headroom {headroom} must be from 0.0 to 1.0");
    }
    let interval = Duration::from_nanos(document.image_disk_watch_interval.nanoseconds);
    ensure!(!interval.is_zero(), "image_disk_watch_interval must be positive");
    let image = |value: &Value| {
        tepui_proto::json::from_slice::<Image>(value.to_string().as_bytes())
            .map_err(|reason| anyhow!("excluded_images: {reason}"))
    };
    let images: Vec<Image> = document.excluded_images.iter().map(image).collect::<Result<_>>()?;
    let excluded =
        tepui_container::image_names(&images).map_err(|reason| anyhow!("excluded_images: {reason}"))?;
    Ok(ImageGc { headroom, interval, excluded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_values_are_parsed() {
        let usual = parse("{}").expect("defaults");
        assert_eq!((usual.headroom, usual.interval), (0.1, Duration::from_secs(3600)));
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("gc.json");
        let text = r#"{"image_disk_headroom":0.25,"image_disk_watch_interval":{"nanoseconds":5000000000},
            "excluded_images":[{"type":"DOCKER","docker":{"name":"alpine"}}]}"#;
        std::fs::write(&file, text).expect("written");
        let named = parse(&format!("file://{}", file.display())).expect("a file");
        assert_eq!((named.headroom, named.interval), (0.25, Duration::from_secs(5)));
        assert_eq!(named.excluded.iter().collect::<Vec<_>>(), ["alpine:latest"]);
        for (text, reason) in [
            (r#"{"image_disk_headroom":1.5}"#, "must be from 0.0 to 1.0"),
            (r#"{"image_disk_watch_interval":{"nanoseconds":0}}"#, "must be positive"),
            (r#"{"image_disk_watch_interval":{"nanoseconds":-1}}"#, "invalid value"),
            (
                r#"{"excluded_images":[{"type":"DOCKER","docker":{"name":"/x"}}]}"#,
                "is not the name of an image",
            ),
            (r#"{"excluded_images":[{"type":"APPC"}]}"#, "only images of the type DOCKER"),
            (r#"{"headroom":0.1}"#, "unknown field"),
        ] {
            let error = format!("{:#}", parse(text).expect_err("refused"));
            assert!(error.starts_with("--image_gc_config: ") && error.contains(reason), "{error}");
        }
    }
}
