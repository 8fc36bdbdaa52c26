//! The keys by which a person leaves a container without ending it.

use anyhow::{Result, bail};

/// Looks for a sequence of keys among all that is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachKeys {
    sequence: Vec<u8>,
    /// How much of it was typed last, and is held back.
    matched: usize,
}

impl DetachKeys {
    /// Parses comma-separated keys: characters, or `ctrl-` and a character. `None` for an empty text.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let sequence: Vec<u8> =
            text.split(',').filter(|key| !key.is_empty()).map(key).collect::<Result<_>>()?;
        Ok((!sequence.is_empty()).then_some(Self { sequence, matched: 0 }))
    }

    /// What of the typed bytes is for the container, and whether the keys were pressed among them.
    pub fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut passed = Vec::with_capacity(bytes.len());
        for byte in bytes {
            // What was held back and turns out to be something else is passed on, as far as it cannot begin the keys.
            while self.matched > 0 && self.sequence[self.matched] != *byte {
                let shorter = self.restart();
                passed.extend_from_slice(&self.sequence[..self.matched - shorter]);
                self.matched = shorter;
            }
            match self.sequence[self.matched] == *byte {
                true => self.matched += 1,
                false => passed.push(*byte),
            }
            if self.matched == self.sequence.len() {
                self.matched = 0;
                return (passed, true);
            }
        }
        (passed, false)
    }

    /// The longest proper prefix of the keys that is a suffix of the held input.
    fn restart(&self) -> usize {
        let held = &self.sequence[..self.matched];
        (0..self.matched).rev().find(|length| held.ends_with(&self.sequence[..*length])).unwrap_or(0)
    }
}

fn key(name: &str) -> Result<u8> {
    let lower = name.to_ascii_lowercase();
    match (lower.strip_prefix("ctrl-").map(str::as_bytes), name.as_bytes()) {
        (Some([letter @ (b'a'..=b'z' | b'@' | b'[' | b']' | b'\\' | b'^' | b'_')]), _) => Ok(letter & 0x1f),
        (None, [letter]) if letter.is_ascii_graphic() => Ok(*letter),
        _ => bail!("'{name}' is not a key; keys are letters, or ctrl- and a letter, as in ctrl-p,ctrl-q"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detach_keys_are_parsed() {
        let bytes = |text: &str| DetachKeys::parse(text).map(|keys| keys.map(|keys| keys.sequence));
        assert_eq!(bytes("ctrl-p,ctrl-q").expect("keys"), Some(vec![0x10, 0x11]));
        assert_eq!(bytes("Ctrl-],x").expect("keys"), Some(vec![0x1d, b'x']));
        assert_eq!(bytes("").expect("keys"), None);
        for wrong in ["ctrl-", "ctrl-1", "escape", "ä"] {
            assert!(DetachKeys::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_whole_sequence_detaches_and_other_input_is_forwarded() {
        for (keys, matched, passed, left) in [
            ("a,b", vec!["xaxab"], "xax", true),
            ("a,b", vec!["a", "b"], "", true),
            ("a,b", vec!["a", "c"], "ac", false),
            ("a,b", vec!["aab"], "a", true),
            ("a,a,b", vec!["aaab"], "a", true),
            ("a,b,a,c", vec!["abab", "ac"], "ab", true),
            ("a,b,a,c", vec!["ababx"], "ababx", false),
            ("a,b", vec!["abrest"], "", true),
        ] {
            let mut detach = DetachKeys::parse(keys).expect("keys").expect("some");
            let (mut all, mut is_left) = (Vec::new(), false);
            for piece in &matched {
                let (bytes, now) = detach.take(piece.as_bytes());
                all.extend(bytes);
                is_left |= now;
            }
            assert_eq!(
                (String::from_utf8_lossy(&all).as_ref(), is_left),
                (passed, left),
                "{keys} {matched:?}"
            );
        }
    }
}
