//! RecordIO: any stream, cut anywhere, gives the same records, and none beyond the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_proto::recordio::{Decoder, RecordError, encode};

const LIMIT: usize = 64;

/// The records of a stream in chunks of `size`, and the error that ended it.
fn decode(stream: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<RecordError>) {
    let mut decoder = Decoder::new(LIMIT);
    let mut records = Vec::new();
    for chunk in stream.chunks(size) {
        decoder.push(chunk);
        for record in decoder.by_ref() {
            match record {
                Ok(record) => records.push(record),
                Err(error) => return (records, Some(error)),
            }
        }
    }
    (records, decoder.finish().err())
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, stream) = input;
    let whole = decode(stream, stream.len().max(1));
    let cut = decode(stream, usize::from(size).max(1));
    assert_eq!(whole, cut);
    assert!(whole.0.iter().all(|record| record.len() <= LIMIT));

    let again: Vec<u8> = whole.0.iter().flat_map(|record| encode(record)).collect();
    assert_eq!(decode(&again, usize::from(size).max(1)), (whole.0, None));
});
