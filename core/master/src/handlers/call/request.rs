//! REQUEST: a framework says what it would like. The allocator offers what there is, so nothing comes of it.

pub(super) fn request() {}
