//! The encoding of a commit that is too large for one transaction: it is stored as a whole before it is applied, so that
//! the next leader can complete it.

use tepui_fsm::Write;

/// All of `writes` as one text.
pub(super) fn encode<'w>(writes: impl IntoIterator<Item = &'w Write>) -> Vec<u8> {
    let mut text = Vec::new();
    for write in writes {
        put(&mut text, write.key.as_bytes());
        match &write.value {
            Some(value) => {
                text.push(1);
                put(&mut text, value);
            }
            None => text.push(0),
        }
    }
    text
}

/// None if it is not such a text.
pub(super) fn decode(mut text: &[u8]) -> Option<Vec<Write>> {
    let mut writes = Vec::new();
    while !text.is_empty() {
        let key = String::from_utf8(take(&mut text)?.to_vec()).ok()?;
        let (kind, rest) = text.split_first()?;
        text = rest;
        let value = match kind {
            0 => None,
            1 => Some(take(&mut text)?.to_vec()),
            _ => return None,
        };
        writes.push(Write { key, value });
    }
    Some(writes)
}

fn put(text: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).expect("a record is smaller than four gigabytes");
    text.extend_from_slice(&length.to_be_bytes());
    text.extend_from_slice(part);
}

fn take<'t>(text: &mut &'t [u8]) -> Option<&'t [u8]> {
    let (length, rest) = text.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *text = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_round_trips() {
        let writes = vec![Write::put("a", b"1".to_vec()), Write::delete("b"), Write::put("c", Vec::new())];
        let text = encode(&writes);
        assert_eq!(decode(&text), Some(writes));
        assert_eq!(decode(&[]), Some(Vec::new()));
        for cut in 1..text.len() {
            // Only a cut between two writes leaves a text; it must never panic.
            let _ = decode(&text[..cut]);
        }
        assert_eq!(decode(&text[..text.len() - 1]), None);
    }
}
