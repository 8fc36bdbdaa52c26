//! Bytes of a file as text that JSON can carry.

/// Each byte that is not part of valid UTF-8 becomes one `?`, so that offsets in bytes stay valid. A character that
/// is cut off at the end is left for the next read, unless there is nothing else.
pub(super) fn lossy(mut bytes: Vec<u8>) -> String {
    let cut = cut_off_tail(&bytes);
    if cut < bytes.len() {
        bytes.truncate(bytes.len() - cut);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|_| text.push('?'));
    }
    text
}

/// How many bytes at the end are the beginning of a character that is not complete.
fn cut_off_tail(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(last) if !last.invalid().is_empty() => match std::str::from_utf8(last.invalid()) {
            Err(err) if err.error_len().is_none() => last.invalid().len(),
            Ok(_) | Err(_) => 0,
        },
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_bytes_are_replaced_one_by_one() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            ("grün".as_bytes(), "grün"),
            (b"a\xffb\xfe\xfdc", "a?b??c"),
            (b"tail \xe2\x82", "tail "),
            (b"\xe2\x82", "??"),
            (b"\x82\xacstart", "??start"),
            (b"", ""),
        ] {
            assert_eq!(lossy(bytes.to_vec()), text, "{bytes:?}");
        }
    }
}
