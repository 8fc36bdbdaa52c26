//! Layers over each other, made of names that are likely to do harm.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_container::fuzz::{self, Entry};

const PARTS: [&str; 16] = [
    "a", "b", "a", "b", "..", ".", "", "/", ".wh.a", ".wh.b", ".wh..wh..opq", ".wh..wh.x", ".wh.", ".wh...", "dev", "precious",
];
const KINDS: [u8; 8] = *b"01234560";

type Drawn<'a> = (u8, &'a [u8], &'a [u8]);

fn path(parts: &[u8]) -> String {
    let part = |byte: &u8| PARTS[usize::from(*byte) % PARTS.len()];
    parts.iter().take(6).map(part).collect::<Vec<_>>().join("/")
}

fuzz_target!(|drawn: Vec<Vec<Drawn>>| {
    let entry = |(kind, name, link): &Drawn| {
        let kind = KINDS[usize::from(*kind) % KINDS.len()];
        let content = if kind == b'0' { link.to_vec() } else { Vec::new() };
        Entry { kind, path: path(name), link: path(link), content }
    };
    let layers: Vec<Vec<Entry>> =
        drawn.iter().take(4).map(|layer| layer.iter().take(16).map(entry).collect()).collect();
    let dir = tempfile::tempdir().expect("a directory");
    fuzz::layers(dir.path(), &layers);
});
