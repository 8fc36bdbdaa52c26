//! Archives with images in them: an error, or an image all of whose parts lie in the archive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_container::fuzz::{self, Entry};

/// The digest of no content at all.
const EMPTY: &str = "blobs/sha256/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const NAMES: [&str; 6] = ["manifest.json", "index.json", "oci-layout", EMPTY, "config.json", "../layer.tar"];
const KINDS: [u8; 4] = *b"0012";

fuzz_target!(|drawn: Vec<(u8, u8, &str)>| {
    let entry = |(kind, name, content): &(u8, u8, &str)| {
        let kind = KINDS[usize::from(*kind) % KINDS.len()];
        let path = NAMES[usize::from(*name) % NAMES.len()].to_owned();
        let (link, content) = match kind {
            b'0' => (String::new(), content.as_bytes().to_vec()),
            _ => ((*content).to_owned(), Vec::new()),
        };
        Entry { kind, path, link, content }
    };
    let dir = tempfile::tempdir().expect("a directory");
    fuzz::image(dir.path(), &drawn.iter().take(32).map(entry).collect::<Vec<_>>());
});
