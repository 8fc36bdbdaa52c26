//! REQUEST: resources that a framework would prefer. The allocator offers what is available, so it has no effect.

pub(super) fn request() {}
