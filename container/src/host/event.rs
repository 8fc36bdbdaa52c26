//! Descriptors that notify by becoming readable.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Lets a descriptor be waited for. It must not block.
pub(crate) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, owned by the AsyncFd, and never replaced in it.
    // WHY: there is no safe way to register a descriptor.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE)? })
}

/// As [`readable`], for descriptors that notify by an exceptional condition.
pub(crate) fn exceptional(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, owned by the AsyncFd, and never replaced in it.
    // WHY: there is no safe way to register a descriptor.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::PRIORITY)? })
}
