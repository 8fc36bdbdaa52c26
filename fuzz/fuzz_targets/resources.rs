//! What operators write about resources and attributes: an error or resources that hold themselves and survive the wire.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_resources::{Format, Resources, parse};

fuzz_target!(|text: &str| {
    let _ = parse::attributes(text);
    if let Ok(resources) = parse::resources(text, "*") {
        let total: Resources = resources.into_iter().collect();
        assert!(total.contains(&total), "{total}");
        let again = Resources::from_proto(&total.to_proto(Format::Post)).expect("its own form is valid");
        assert_eq!(again, total);
    }
});
