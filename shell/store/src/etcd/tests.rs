//! What needs no etcd; the rest is tested with a real one, in `test/e2e`.

use serde_json::json;

use super::client::range_end;
use super::records::room;

#[test]
fn range_end_of_a_prefix_is_its_successor() {
    for (prefix, end) in [(&b"/a/"[..], &b"/a0"[..]), (b"a\xff", b"b"), (b"\xff", b"\0"), (b"", b"\0")] {
        assert_eq!(range_end(prefix), end, "{prefix:?}");
    }
}

#[test]
fn nospace_alarm_is_disk_pressure() {
    for (status, is_short) in [
        (json!({"dbSize": "20480"}), false),
        (json!({"errors": []}), false),
        (json!({"errors": ["memberID:1 alarm:CORRUPT "]}), false),
        (json!({"errors": ["memberID:1 alarm:CORRUPT ", "memberID:2 alarm:NOSPACE "]}), true),
    ] {
        assert_eq!(room(&status).is_short, is_short, "{status}");
    }
}
