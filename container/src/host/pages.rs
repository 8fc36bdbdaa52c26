//! Large pages: our program's allocator asks for them, and a helper that lives with some kilobytes would have the kernel
//! clear megabytes, and would keep them for as long as its container lives.
//!
//! The allocator hears by a variable that it is to do without; it then forbids them to its whole process, and the kernel
//! to all who are started by that. So whoever becomes somebody's command allows them again.

use nix::sys::prctl;

/// For the environment of a helper or an executor of ours.
const SMALL_ONLY: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");

/// The name of the variable, which is no business of commands.
pub(crate) const VARIABLE: &str = SMALL_ONLY.0;

/// What to start our own program with. Nothing if an operator forbade large pages: nobody must allow them again.
pub(crate) fn small_only() -> Option<(&'static str, &'static str)> {
    prctl::get_thp_disable().is_ok_and(|forbidden| !forbidden).then_some(SMALL_ONLY)
}

/// Whether this process was started so.
pub(crate) fn are_small_only() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Makes a system call only.
pub(crate) fn allow_large() {
    prctl::set_thp_disable(false).ok(); // A kernel without them.
}
