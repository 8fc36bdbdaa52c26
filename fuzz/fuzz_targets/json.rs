//! JSON: whatever a peer sends is an error or a call, and a call that was read is written as JSON that reads as the same call.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_proto::json;
use tepui_proto::mesos::v1::scheduler::Call;

fuzz_target!(|input: &[u8]| {
    if let Ok(call) = json::from_slice::<Call>(input) {
        // Written once, defaults of unset fields are there; from then on nothing changes.
        let text = json::to_vec(&call);
        let again = json::from_slice::<Call>(&text).expect("reads what it wrote");
        assert_eq!(json::to_vec(&again), text);
    }
});
