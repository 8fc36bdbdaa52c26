//! What needs no etcd; the rest is tested with a real one, in `test/e2e`.

use super::client::range_end;

#[test]
fn the_end_of_a_prefix() {
    for (prefix, end) in [(&b"/a/"[..], &b"/a0"[..]), (b"a\xff", b"b"), (b"\xff", b"\0"), (b"", b"\0")] {
        assert_eq!(range_end(prefix), end, "{prefix:?}");
    }
}
