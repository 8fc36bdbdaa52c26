//! Randomness for drivers of sessions outside a simulation: backoff draws and ids of updates.
//!
//! Sessions never call this; randomness is an argument there. Not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A random number. The standard library keys every `RandomState` differently, from the system's randomness.
pub fn number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Sixteen bytes shaped as a version 4 UUID, as status updates carry.
pub fn uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number().to_be_bytes());
    bytes[8..].copy_from_slice(&number().to_be_bytes());
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

/// The usual text of a UUID: 36 characters.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_unique_and_version_4() {
        let (a, b) = (uuid_text(&uuid()), uuid_text(&uuid()));
        assert_ne!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(a.as_bytes()[14], b'4');
    }
}
