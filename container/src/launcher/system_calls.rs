//! System calls on mounts and descriptors that allocate nothing, so that they can be made between fork and exec.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(super) fn text(path: impl AsRef<Path>) -> io::Result<CString> {
    Ok(CString::new(path.as_ref().as_os_str().as_bytes())?)
}

pub(super) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    data: Option<&CStr>,
) -> io::Result<()> {
    let or_null = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: strings that end with NUL, or null where the kernel takes that. WHY: std does not mount.
    done(unsafe { libc::mount(or_null(source), target.as_ptr(), or_null(kind), flags, or_null(data).cast()) })
}

pub(super) fn open(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a path that ends with NUL; the descriptor is owned here. WHY: std's error path may allocate.
    owned(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) })
}

pub(super) fn open_file(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: as above. WHY: as above.
    owned(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })
}

pub(super) fn openat2(root: RawFd, path: &CStr, flags: i32, resolve: u64) -> io::Result<OwnedFd> {
    // SAFETY: all zero is a valid value. WHY: the struct cannot be made otherwise.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = resolve;
    // SAFETY: the struct and its size are right; the descriptor is owned here. WHY: the only call that confines
    // links.
    owned(unsafe { libc::syscall(libc::SYS_openat2, root, path.as_ptr(), &how, size_of_val(&how)) } as RawFd)
}

pub(super) fn duplicate(fd: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor is owned here. WHY: std's error path may allocate.
    owned(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) })
}

pub(super) fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that the kernel just gave us. WHY: it must be closed.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `/proc/self/fd/<n>` without allocating.
pub(super) fn fd_path<'a>(fd: &impl AsRawFd, buffer: &'a mut [u8; 32]) -> &'a CStr {
    const PREFIX: &[u8] = b"/proc/self/fd/";
    buffer[..PREFIX.len()].copy_from_slice(PREFIX);
    let (mut number, mut digits, mut count) = (fd.as_raw_fd().unsigned_abs(), [0u8; 10], 0);
    loop {
        digits[count] = b'0' + (number % 10) as u8;
        number /= 10;
        count += 1;
        if number == 0 {
            break;
        }
    }
    for index in 0..count {
        buffer[PREFIX.len() + index] = digits[count - 1 - index];
    }
    buffer[PREFIX.len() + count] = 0;
    CStr::from_bytes_until_nul(buffer).unwrap_or(c"")
}

pub(super) fn open_tree(root: RawFd, path: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: a path that ends with NUL; the descriptor is owned here. WHY: mount(2) is limited to one namespace.
    owned(unsafe { libc::syscall(libc::SYS_open_tree, root, path.as_ptr(), flags) } as RawFd)
}

pub(super) fn move_mount(tree: RawFd, on: RawFd) -> io::Result<()> {
    let (empty, flags) = (c"".as_ptr(), libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH);
    // SAFETY: descriptors and constant strings. WHY: the only call that takes mounts of another namespace.
    done(unsafe { libc::syscall(libc::SYS_move_mount, tree, empty, on, empty, flags) } as libc::c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_paths_are_formatted() {
        let mut buffer = [0; 32];
        let null = std::fs::File::open("/dev/null").expect("there").into();
        let fd: OwnedFd = null;
        let expected = format!("/proc/self/fd/{}", fd.as_raw_fd());
        assert_eq!(fd_path(&fd, &mut buffer).to_str(), Ok(expected.as_str()));
    }
}
