//! Binary input: whatever a peer sends is an error or a complete call, and a call survives both of its forms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::{json, wire};

const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    if let Ok(call) = wire::decode::<Call>(input, LIMIT) {
        let bytes = wire::encode(&call);
        assert_eq!(wire::decode::<Call>(&bytes, LIMIT * 2).expect("reads what it wrote"), call);
        json::from_slice::<Call>(&json::to_vec(&call)).expect("is complete in JSON too");
    }
});
