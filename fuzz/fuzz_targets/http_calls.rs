//! A connection of HTTP requests: however it is cut, and whether calls on it are handled together or not, the same requests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_http::fuzz::requests;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece_bytes, bytes) = input;
    let expected = requests(bytes, bytes.len().max(1), false);
    assert_eq!(requests(bytes, bytes.len().max(1), true), expected);
    assert!(expected.starts_with(&requests(bytes, usize::from(piece_bytes).max(1), true)));
});
