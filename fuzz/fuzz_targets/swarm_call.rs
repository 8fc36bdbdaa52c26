//! The target of a request to the Docker front end, and what an engine lists: errors or what they say, nothing beyond it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_swarm_shell::fuzz;

fuzz_target!(|drawn: (u8, &str, &str)| {
    let (method, target, listed) = drawn;
    let method = ["GET", "HEAD", "POST", "PUT", "DELETE"][usize::from(method) % 5];
    fuzz::call(method, target);
    fuzz::listed(listed);
});
