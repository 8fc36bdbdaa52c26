//! Randomness from the system, to seed a machine with. Its own draws come from the seed.

use std::fs::File;
use std::io::Read;

/// Eight random bytes.
pub fn entropy() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
