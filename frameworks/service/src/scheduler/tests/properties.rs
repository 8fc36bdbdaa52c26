//! Properties that operators store.

use super::script::{World, config};
use crate::scheduler::Command;

#[test]
fn properties_are_limited_in_number_and_name() {
    let mut world = World::new(config(), 1);
    let mut put = |key: String| {
        world.text.clear();
        world.command(Command::PutProperty { key, value: b"value".to_vec() });
        world.text.clone()
    };
    for number in 0..1000 {
        assert!(put(format!("file-{number}")).contains("record +property/file-"));
    }
    assert!(put("file-1000".to_owned()).contains("1000 properties are stored already"));
    assert!(put("file-7".to_owned()).contains("record +property/file-7"), "one that exists is replaced");
    assert!(put("x".repeat(256)).contains("longer than 255 bytes"));
}
