//! A layer of an image as somebody sent it: whatever it is, nothing is written outside of its directory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_container::fuzz;

const BLOCK: usize = 512;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const SIZE: std::ops::Range<usize> = 124..136;

/// Sets the checksum of every header right: by chance alone none ever would be.
fn with_checksums(input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + BLOCK) {
        header[CHECKSUM].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = std::str::from_utf8(&header[SIZE]).unwrap_or_default();
        let size = usize::from_str_radix(size.trim_matches(['\0', ' ']), 8).unwrap_or(0);
        at = at.saturating_add(BLOCK).saturating_add(size.saturating_add(BLOCK - 1) / BLOCK * BLOCK);
        if at >= bytes.len() {
            break;
        }
    }
    bytes
}

fuzz_target!(|input: (bool, &[u8])| {
    let dir = tempfile::tempdir().expect("a directory");
    match input {
        (true, bytes) => fuzz::layer(dir.path(), bytes),
        (false, bytes) => fuzz::layer(dir.path(), &with_checksums(bytes)),
    }
});
