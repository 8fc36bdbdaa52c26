//! Finding the end of plain text in a JSON string, eight bytes at a time. Shared by the writer and the reader.

const ONES: u64 = u64::from_le_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);

/// How many bytes at the start are neither control characters nor `"` nor `\`.
#[inline]
pub(super) fn plain_prefix(text: &[u8]) -> usize {
    let (words, tail) = text.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let found = special_bytes(u64::from_le_bytes(*word));
        if found != 0 {
            return place * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    words.len() * 8 + tail.iter().position(is_special).unwrap_or(tail.len())
}

/// The high bit of the first special byte, lowest address first; higher bits are undefined (a borrow may set them).
#[inline]
fn special_bytes(word: u64) -> u64 {
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    let zero_where = |byte: u8| {
        let difference = word ^ (ONES * u64::from(byte));
        difference.wrapping_sub(ONES) & !difference
    };
    (below_space | zero_where(b'"') | zero_where(b'\\')) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::plain_prefix;
    use alloc::vec;

    #[test]
    fn finds_each_special_byte_at_each_place() {
        for length in 0..40 {
            for place in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'a'; length];
                    text[place] = byte;
                    let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(plain_prefix(&text), if special { place } else { length });
                }
            }
        }
    }

    #[test]
    fn first_special_byte_is_found() {
        let text = b"\xff\x80\x7f!#[]\x1f\"";
        assert_eq!(plain_prefix(text), 7);
    }
}
