//! Small files of the kernel, read with the fewest system calls: a thousand containers have twenty thousand of them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Larger than nearly all of them.
const USUAL_BYTES: usize = 4096;

/// All of a file that the kernel makes as a whole, as text. `None` if it is not there (any more).
pub(crate) fn read_kernel_file(path: &Path) -> Option<String> {
    String::from_utf8(read_kernel_bytes(path).ok()?).ok()
}

/// All of a file that the kernel makes as a whole; a short read is its end.
pub(crate) fn read_kernel_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut filled) = (vec![0; USUAL_BYTES], 0);
    loop {
        let read = file.read(&mut bytes[filled..])?;
        filled += read;
        if read == 0 || filled < bytes.len() {
            bytes.truncate(filled);
            return Ok(bytes);
        }
        bytes.resize(filled * 2, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_of_any_length_are_read_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        assert_eq!(read_kernel_file(&path), None);
        for length in [0, 1, USUAL_BYTES - 1, USUAL_BYTES, USUAL_BYTES + 1, 5 * USUAL_BYTES] {
            let text = "x".repeat(length);
            std::fs::write(&path, &text).expect("written");
            assert_eq!(read_kernel_file(&path), Some(text), "{length}");
        }
    }
}
