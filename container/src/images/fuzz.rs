//! What the fuzzer feeds (`fuzz/README.md`), with what must hold afterwards. Built for it and for tests only.
//!
//! Everything happens below an empty directory that the caller gives and removes.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::blob::Blob;
use super::copy::copy;
use super::digest::Digest;
use super::local;
use super::manifest::Config;
use super::reference::Reference;
use super::testing::TarBuilder;
use super::unpack::{Form, WHITEOUT, unpack};

/// An entry of an archive, as strange as can be.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As in the header.
    pub kind: u8,
    pub path: String,
    pub link: String,
    pub content: Vec<u8>,
}

/// A layer from an untrusted peer, compressed or not. Its digest does not match, so it is rejected in any case.
pub fn layer(dir: &Path, bytes: &[u8]) {
    let file = dir.join("blob");
    std::fs::write(&file, bytes).expect("written");
    let blob = Blob::of_file(file).expect("it is there");
    guarded(dir, |root| {
        blob.unpack(&Digest::of(b"another"), root, Form::Plain).expect_err("the digest is another one");
    });
}

/// Layers over each other, in both forms: nothing is written elsewhere, and what is copied holds no whiteouts.
pub fn layers(dir: &Path, layers: &[Vec<Entry>]) {
    let archives: Vec<Vec<u8>> = layers.iter().map(|entries| archive(entries)).collect();
    let overlay = dir.join("overlay");
    std::fs::create_dir(&overlay).expect("made");
    guarded(&overlay, |root| {
        archives.iter().for_each(|bytes| drop(unpack(bytes.as_slice(), root, Form::Overlay)));
    });
    guarded(dir, |root| {
        for (number, bytes) in archives.iter().enumerate() {
            let one = dir.join(format!("layer-{number}"));
            std::fs::create_dir(&one).expect("made");
            if unpack(bytes.as_slice(), &one, Form::Plain).is_ok() {
                copy(&one, root).expect("what was unpacked can be copied");
            }
        }
        assert!(!has_whiteouts(root), "a whiteout became a file");
    });
}

/// An archive of an image, by the name `image`: whatever is found of it lies in the archive.
pub fn image(dir: &Path, entries: &[Entry]) {
    let path = dir.join("image.tar");
    std::fs::write(&path, archive(entries)).expect("written");
    let reference = Reference::parse("image").expect("a name");
    if let Ok(found) = local::find(dir, &reference) {
        let size = std::fs::metadata(&path).expect("it is there").len();
        for blob in found.layers.iter().chain([&found.config]) {
            assert!(blob.file == path && blob.offset.saturating_add(blob.size) <= size, "{blob:?}");
        }
        let _ = found.config.read("the configuration").map(|bytes| Config::parse(&bytes).map(drop));
    }
}

fn archive(entries: &[Entry]) -> Vec<u8> {
    let add = |tar: TarBuilder, one: &Entry| {
        let (path, link) = (one.path.replace('\0', ""), one.link.replace('\0', ""));
        let tar = tar.entry("././@LongLink", b'L', 0, "", path.as_bytes());
        let tar = tar.entry("././@LongLink", b'K', 0, "", link.as_bytes());
        tar.entry("", one.kind, 0o7777, "", &one.content)
    };
    entries.iter().fold(TarBuilder::new(), add).finish()
}

/// Does `work` in a directory beside a file that must stay as it is, and beside which nothing must appear.
fn guarded(dir: &Path, work: impl FnOnce(&Path)) {
    let (outside, root) = (dir.join("outside"), dir.join("outside/root"));
    std::fs::create_dir_all(&root).expect("made");
    std::fs::write(outside.join("precious"), "kept").expect("written");
    work(&root);
    let mut names: Vec<_> =
        std::fs::read_dir(&outside).expect("there").flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["precious", "root"]);
    assert_eq!(std::fs::read(outside.join("precious")).expect("there"), b"kept");
}

fn has_whiteouts(dir: &Path) -> bool {
    std::fs::read_dir(dir).into_iter().flatten().flatten().any(|entry| {
        entry.file_name().as_bytes().starts_with(WHITEOUT)
            || (entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_whiteouts(&entry.path()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u8, path: &str, link: &str, content: &[u8]) -> Entry {
        Entry { kind, path: path.into(), link: link.into(), content: content.to_vec() }
    }

    #[test]
    fn fuzz_checks_pass_for_valid_and_invalid_layers() {
        let dir = || tempfile::tempdir().expect("a directory");
        let lower =
            vec![entry(b'5', "d", "", b""), entry(b'0', "d/a", "", b"1"), entry(b'2', "l", "..", b"")];
        let upper = vec![entry(b'0', "d/.wh.a", "", b""), entry(b'0', "l/x", "", b"2")];
        let outside = vec![entry(b'0', "../precious", "", b"3"), entry(b'1', "x", "../precious", b"")];
        layers(dir().path(), &[lower.clone(), upper, outside]);
        layer(dir().path(), &archive(&lower));
        layer(dir().path(), b"\x1f\x8bnonsense");
        let manifest = br#"[{"Config":"../../c.json","Layers":["/a/../l"]}]"#;
        let names = [("manifest.json", &manifest[..]), ("c.json", b"{}"), ("./l", b"layer")];
        let saved: Vec<Entry> = names.iter().map(|(name, text)| entry(b'0', name, "", text)).collect();
        image(dir().path(), &saved);
    }
}
