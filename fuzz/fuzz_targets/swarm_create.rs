//! The document of a create call: an error, or a container that is read the same from its own record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tepui_swarm::{ContainerSpec, Expression};

fuzz_target!(|body: &[u8]| {
    let Ok(spec) = ContainerSpec::parse(body, true) else { return };
    let again = ContainerSpec::parse(spec.body().as_bytes(), true).expect("its own record is valid");
    let texts = |all: &[Expression]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&again.constraints), texts(&spec.constraints));
    assert_eq!(texts(&again.affinities), texts(&spec.affinities));
    assert_eq!(texts(&again.whitelists), texts(&spec.whitelists));
    assert_eq!((again.choice, again.reschedule), (spec.choice, spec.reschedule));
    assert_eq!((&again.labels, &again.image, &again.bindings), (&spec.labels, &spec.image, &spec.bindings));
    assert_eq!((again.request(), again.body()), (spec.request(), spec.body()));
});
