//! What a container sees of files: the mounts of a plan, made by a process that is in a mount namespace of its own.
//!
//! Everything that needs memory is made before the fork; the rest is system calls. Targets are opened as if their root
//! were `/`, so that no link of an image or a user leads out of it, and mounted on by descriptor.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use super::failure::Failure;
use super::overlay;
use super::system_calls::{
    done, duplicate, fd_path, mount, move_mount, open, open_file, open_tree, openat2, owned, text,
};
use crate::plan::{Make, Mount, NodeKind, Plan, Root, Secret, Source, Target};

/// Where the content of secrets is while it is made; in the sandbox, gone afterwards.
const STAGE: &CStr = c".tepui-secret";
const FOLLOW_IN_ROOT: u64 = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
const NO_EXTRAS: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// All mounts of a plan, ready to be made.
pub(super) struct Mounts {
    overlays: Vec<overlay::Step>,
    steps: Vec<Step>,
    rootfs: Option<CString>,
    /// The root file system is made for others.
    stays_outside: bool,
}

enum Step {
    Bind { source: Origin, target: Place, read_only: bool },
    Tree { namespace: OwnedFd, path: CString, tree: AtomicI32, target: Place },
    Special { kind: &'static CStr, flags: libc::c_ulong, data: Option<CString>, target: Place },
    Node { target: Place, mode: libc::mode_t, device: libc::dev_t },
    Link { target: Place, to: CString },
    ReadOnly(Place),
    Mask(Place),
    Secret { target: Place, content: Secret, mode: libc::mode_t, owner: Option<(u32, u32)> },
}

enum Origin {
    /// A trusted path and what follows from there without links.
    Host(CString, Option<CString>),
    Sandbox,
}

struct Place {
    root: Root,
    /// Every path on the way with the name it ends with, the whole one last.
    parts: Vec<(CString, CString)>,
    make: Make,
}

/// The open roots.
struct Roots {
    host: OwnedFd,
    sandbox: OwnedFd,
    rootfs: Option<OwnedFd>,
}

impl Mounts {
    pub fn new(plan: &Plan) -> io::Result<Mounts> {
        Ok(Mounts {
            overlays: plan.overlays.iter().map(overlay::Step::new).collect::<io::Result<_>>()?,
            steps: plan.mounts.iter().map(prepare).collect::<io::Result<_>>()?,
            rootfs: plan.rootfs.as_deref().map(text).transpose()?,
            stays_outside: plan.stays_outside,
        })
    }

    /// Takes what other containers see. Comes before the namespace is made; leaves this process where it was.
    pub fn gather(&self) -> Result<(), Failure> {
        for (index, step) in self.steps.iter().enumerate() {
            if let Step::Tree { namespace, path, tree, .. } = step {
                let taken = take_tree(namespace, path).map_err(|err| Failure::of_mount(index, &err))?;
                tree.store(taken.into_raw_fd(), Relaxed);
            }
        }
        Ok(())
    }

    /// Makes all of them. The working directory must be the sandbox; with a root file system it is its `/` afterwards.
    pub fn make(&self) -> Result<(), Failure> {
        // What happens here stays here; what the host unmounts goes here too.
        mount(None, c"/", None, libc::MS_REC | libc::MS_SLAVE, None)
            .map_err(Failure::at("the mount namespace"))?;
        for overlay in &self.overlays {
            overlay.make().map_err(Failure::at("the layers of its image"))?;
        }
        let roots = self.open_roots().map_err(Failure::at("the root file system"))?;
        for (index, step) in self.steps.iter().enumerate() {
            step.make(&roots).map_err(|err| Failure::of_mount(index, &err))?;
        }
        match &roots.rootfs {
            Some(rootfs) if !self.stays_outside => pivot(rootfs).map_err(Failure::at("the root file system")),
            Some(_) | None => Ok(()),
        }
    }

    fn open_roots(&self) -> io::Result<Roots> {
        if let Some(rootfs) = &self.rootfs {
            mount(Some(rootfs), rootfs, None, libc::MS_BIND | libc::MS_REC, None)?;
        }
        Ok(Roots {
            host: open(c"/")?,
            sandbox: open(c".")?,
            rootfs: self.rootfs.as_deref().map(open).transpose()?,
        })
    }
}

/// The sandbox of a running container, for processes in its mount namespace.
pub(super) struct Ground(Roots);

impl Ground {
    /// The working directory.
    pub fn here() -> io::Result<Ground> {
        Ok(Ground(Roots { host: open(c"/")?, sandbox: open(c".")?, rootfs: None }))
    }

    /// Mounts a tree that was taken elsewhere.
    pub fn show(&self, tree: &OwnedFd, target: &Path) -> io::Result<()> {
        let target = place(&Target::new(Root::Sandbox, target, Make::Directory))?;
        match target.ready(&self.0)? {
            Some(on) => move_mount(tree.as_raw_fd(), on.as_raw_fd()),
            None => Ok(()),
        }
    }
}

/// Takes away what is mounted below the working directory; nothing there is no error.
pub(super) fn hide(target: &Path) -> io::Result<()> {
    let target = text(target)?;
    // SAFETY: a path that ends with NUL. WHY: std does not unmount.
    match done(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) }) {
        Err(err) if matches!(err.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => Ok(()),
        hidden => hidden,
    }
}

/// A copy of what is mounted at a path, and below it, that is mounted nowhere yet.
pub(super) fn clone_tree(root: RawFd, path: &Path) -> io::Result<OwnedFd> {
    open_tree(root, &text(path)?)
}

/// Enters a namespace and returns with a copy of a mount there.
fn take_tree(namespace: &OwnedFd, path: &CStr) -> io::Result<OwnedFd> {
    let (home, sandbox) = (open_file(c"/proc/self/ns/mnt")?, open(c".")?);
    // SAFETY: descriptors only. WHY: as below.
    done(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) })?;
    let tree = open_tree(libc::AT_FDCWD, path);
    // SAFETY: descriptors only. WHY: the rest is done at home.
    unsafe {
        done(libc::setns(home.as_raw_fd(), libc::CLONE_NEWNS))?;
        done(libc::fchdir(sandbox.as_raw_fd()))?;
    }
    tree
}

fn prepare(mount: &Mount) -> io::Result<Step> {
    Ok(match mount {
        Mount::Bind { source, target, read_only } => {
            Step::Bind { source: origin(source)?, target: place(target)?, read_only: *read_only }
        }
        Mount::Parents { process, path, target } => {
            let namespace = File::open(format!("/proc/{}/ns/mnt", process.pid))?.into();
            if !process.is_alive() {
                return Err(io::Error::other("its parent container has terminated"));
            }
            Step::Tree { namespace, path: text(path)?, tree: AtomicI32::new(-1), target: place(target)? }
        }
        Mount::Sandbox { target } => {
            Step::Bind { source: Origin::Sandbox, target: place(target)?, read_only: false }
        }
        Mount::Proc { target } => special(c"proc", NO_EXTRAS, None, target)?,
        Mount::Sysfs { target } => special(c"sysfs", NO_EXTRAS | libc::MS_RDONLY, None, target)?,
        Mount::Devpts { target } => {
            let data = "newinstance,ptmxmode=0666,mode=0620,gid=5";
            special(c"devpts", libc::MS_NOSUID | libc::MS_NOEXEC, Some(data), target)?
        }
        Mount::Tmpfs { target, mode, bytes_max } => {
            let size = bytes_max.map_or(String::new(), |bytes| format!(",size={bytes}"));
            let flags = libc::MS_NOSUID | libc::MS_STRICTATIME;
            special(c"tmpfs", flags, Some(&format!("mode={mode:o}{size}")), target)?
        }
        Mount::Node { target, kind, major, minor, mode } => {
            let kind = match kind {
                NodeKind::Character => libc::S_IFCHR,
                NodeKind::Block => libc::S_IFBLK,
            };
            let device = libc::makedev(*major, *minor);
            Step::Node { target: place(target)?, mode: kind | mode, device }
        }
        Mount::Link { target, to } => Step::Link { target: place(target)?, to: text(to)? },
        Mount::ReadOnly { target } => Step::ReadOnly(place(target)?),
        Mount::Mask { target } => Step::Mask(place(target)?),
        Mount::Secret { target, content, mode, owner } => {
            Step::Secret { target: place(target)?, content: content.clone(), mode: *mode, owner: *owner }
        }
    })
}

fn special(
    kind: &'static CStr,
    flags: libc::c_ulong,
    data: Option<&str>,
    target: &Target,
) -> io::Result<Step> {
    let data = data.map(CString::new).transpose()?;
    Ok(Step::Special { kind, flags, data, target: place(target)? })
}

fn origin(source: &Source) -> io::Result<Origin> {
    let rest = (!source.path.as_os_str().is_empty()).then(|| text(&source.path));
    Ok(Origin::Host(text(&source.root)?, rest.transpose()?))
}

fn place(target: &Target) -> io::Result<Place> {
    let (mut path, mut parts) = (std::path::PathBuf::new(), Vec::new());
    for part in target.path.components() {
        match part {
            Component::Normal(name) => {
                path.push(name);
                parts.push((text(&path)?, CString::new(name.as_bytes())?));
            }
            Component::CurDir | Component::RootDir => (),
            Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(Place { root: target.root, parts, make: target.make })
}

impl Step {
    fn make(&self, roots: &Roots) -> io::Result<()> {
        match self {
            Step::Bind { source, target, read_only } => {
                let source = source.open(roots)?;
                bind(&source, target, roots)?;
                if *read_only {
                    target.open(roots)?.map_or(Ok(()), |on| set_read_only(on.as_raw_fd()))
                } else {
                    Ok(())
                }
            }
            Step::Tree { tree, target, .. } => {
                let Some(on) = target.ready(roots)? else { return Ok(()) };
                move_mount(tree.load(Relaxed), on.as_raw_fd())
            }
            Step::Special { kind, flags, data, target } => {
                let Some(on) = target.ready(roots)? else { return Ok(()) };
                let mut buffer = [0; 32];
                mount(Some(kind), fd_path(&on, &mut buffer), Some(kind), *flags, data.as_deref())
            }
            Step::Node { target, mode, device } => target.make_entry(roots, |above, name| {
                // SAFETY: a name that ends with NUL. WHY: std makes no devices. The mask of this process is undone after.
                unsafe {
                    match libc::mknodat(above, name.as_ptr(), *mode, *device) {
                        0 => libc::fchmodat(above, name.as_ptr(), mode & 0o7777, 0),
                        failed => failed,
                    }
                }
            }),
            Step::Link { target, to } => target.make_entry(roots, |above, name| {
                // SAFETY: names that end with NUL. WHY: std does not link below a descriptor.
                unsafe { libc::symlinkat(to.as_ptr(), above, name.as_ptr()) }
            }),
            Step::ReadOnly(target) => {
                let Some(there) = target.open(roots)? else { return Ok(()) };
                bind(&there, target, roots)?;
                target.open(roots)?.map_or(Ok(()), |on| set_read_only(on.as_raw_fd()))
            }
            Step::Mask(target) => mask(target, roots),
            Step::Secret { target, content, mode, owner } => {
                let made = make_secret(target, content, *mode, *owner, roots);
                unstage(roots);
                made
            }
        }
    }
}

impl Origin {
    fn open(&self, roots: &Roots) -> io::Result<OwnedFd> {
        match self {
            Origin::Host(root, None) => open(root),
            Origin::Host(root, Some(rest)) => {
                let root = open(root)?;
                openat2(
                    root.as_raw_fd(),
                    rest,
                    libc::O_PATH,
                    libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS,
                )
            }
            Origin::Sandbox => duplicate(&roots.sandbox),
        }
    }
}

impl Place {
    fn root<'a>(&self, roots: &'a Roots) -> io::Result<&'a OwnedFd> {
        match self.root {
            Root::Host => Ok(&roots.host),
            Root::Sandbox => Ok(&roots.sandbox),
            Root::Rootfs => roots.rootfs.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    /// What is there now; `None` if it need not be and is not.
    fn open(&self, roots: &Roots) -> io::Result<Option<OwnedFd>> {
        let root = self.root(roots)?;
        let Some((path, _)) = self.parts.last() else { return duplicate(root).map(Some) };
        match openat2(root.as_raw_fd(), path, libc::O_PATH, FOLLOW_IN_ROOT) {
            Err(err) if self.make == Make::Optional && err.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// As [`Place::open`], after what is missing was made.
    fn ready(&self, roots: &Roots) -> io::Result<Option<OwnedFd>> {
        let last = match self.make {
            Make::Directory => Make::Directory,
            Make::File => Make::File,
            Make::Nothing | Make::Optional => return self.open(roots),
        };
        let root = self.root(roots)?;
        let mut above = duplicate(root)?;
        for (index, (path, name)) in self.parts.iter().enumerate() {
            let kind = if index + 1 == self.parts.len() { last } else { Make::Directory };
            above = step_into(root, &above, path, name, kind)?;
        }
        Ok(Some(above))
    }

    /// Makes something that is no directory; what is there already stays.
    fn make_entry(&self, roots: &Roots, make: impl Fn(RawFd, &CStr) -> libc::c_int) -> io::Result<()> {
        let root = self.root(roots)?;
        let Some((_, name)) = self.parts.last() else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        let mut above = duplicate(root)?;
        for (path, name) in &self.parts[..self.parts.len() - 1] {
            above = step_into(root, &above, path, name, Make::Directory)?;
        }
        match done(make(above.as_raw_fd(), name)) {
            Err(err) if err.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            made => made,
        }
    }
}

/// Opens `path` below `root`; if it is missing, makes it as `name` in `above`.
fn step_into(root: &OwnedFd, above: &OwnedFd, path: &CStr, name: &CStr, kind: Make) -> io::Result<OwnedFd> {
    let open = || openat2(root.as_raw_fd(), path, libc::O_PATH, FOLLOW_IN_ROOT);
    match open() {
        Err(err) if err.raw_os_error() == Some(libc::ENOENT) => (),
        opened => return opened,
    }
    let above = above.as_raw_fd();
    match kind {
        Make::File => {
            let flags = libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_WRONLY | libc::O_CLOEXEC;
            // SAFETY: a name that ends with NUL; the descriptor is owned here. WHY: std opens no file below another.
            let create = || owned(unsafe { libc::openat(above, name.as_ptr(), flags, 0o644) });
            match create() {
                // A link that leads nowhere.
                Err(err) if err.raw_os_error() == Some(libc::EEXIST) => {
                    // SAFETY: as above. WHY: as above.
                    done(unsafe { libc::unlinkat(above, name.as_ptr(), 0) })?;
                    drop(create()?);
                }
                created => drop(created?),
            }
        }
        Make::Directory | Make::Nothing | Make::Optional => {
            // SAFETY: a name that ends with NUL. WHY: std makes no directory below another.
            done(unsafe { libc::mkdirat(above, name.as_ptr(), 0o755) })?;
        }
    }
    open()
}

fn bind(source: &OwnedFd, target: &Place, roots: &Roots) -> io::Result<()> {
    let Some(on) = target.ready(roots)? else { return Ok(()) };
    let (mut from, mut to) = ([0; 32], [0; 32]);
    let (from, to) = (fd_path(source, &mut from), fd_path(&on, &mut to));
    mount(Some(from), to, None, libc::MS_BIND | libc::MS_REC, None)
}

/// With everything mounted below it, where the kernel can do that.
pub(super) fn set_read_only(on: RawFd) -> io::Result<()> {
    // SAFETY: all zero is a valid value: no change. WHY: no wrapper has the call.
    let mut change: libc::mount_attr = unsafe { std::mem::zeroed() };
    change.attr_set = libc::MOUNT_ATTR_RDONLY;
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the struct and its size are right. WHY: as above.
    let set = unsafe {
        libc::syscall(libc::SYS_mount_setattr, on, c"".as_ptr(), flags, &change, size_of_val(&change))
    };
    if set == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
        return done(set as libc::c_int);
    }
    let mut buffer = [0; 32];
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY;
    mount(None, fd_path(&on, &mut buffer), None, flags, None)
}

fn mask(target: &Place, roots: &Roots) -> io::Result<()> {
    let Some(there) = target.open(roots)? else { return Ok(()) };
    // SAFETY: all zero is a valid value, and the kernel fills it. WHY: no allocation.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    done(unsafe { libc::fstat(there.as_raw_fd(), &mut stat) })?;
    let mut buffer = [0; 32];
    let on = fd_path(&there, &mut buffer);
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFDIR => mount(Some(c"tmpfs"), on, Some(c"tmpfs"), libc::MS_RDONLY, Some(c"size=0k")),
        _ => mount(Some(c"/dev/null"), on, None, libc::MS_BIND, None),
    }
}

/// The content is written to a file system in memory, visible only through the one file mounted from it.
fn make_secret(
    target: &Place,
    content: &Secret,
    mode: libc::mode_t,
    owner: Option<(u32, u32)>,
    roots: &Roots,
) -> io::Result<()> {
    let sandbox = roots.sandbox.as_raw_fd();
    // SAFETY: names that end with NUL. WHY: std makes nothing below a descriptor.
    done(unsafe { libc::mkdirat(sandbox, STAGE.as_ptr(), 0o700) })?;
    let stage = openat2(sandbox, STAGE, libc::O_PATH | libc::O_DIRECTORY, libc::RESOLVE_NO_SYMLINKS)?;
    let mut buffer = [0; 32];
    mount(Some(c"ramfs"), fd_path(&stage, &mut buffer), Some(c"ramfs"), NO_EXTRAS, None)?;
    let stage = openat2(sandbox, STAGE, libc::O_PATH | libc::O_DIRECTORY, libc::RESOLVE_NO_SYMLINKS)?;
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: as above; the descriptor is owned here. WHY: as above.
    let file = owned(unsafe { libc::openat(stage.as_raw_fd(), c"value".as_ptr(), flags, mode) })?;
    let mut rest = content.0.as_slice();
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&file, rest)?..];
    }
    if let Some((uid, gid)) = owner {
        // SAFETY: plain numbers. WHY: std's error path may allocate.
        done(unsafe { libc::fchown(file.as_raw_fd(), uid, gid) })?;
    }
    let source = openat2(stage.as_raw_fd(), c"value", libc::O_PATH, libc::RESOLVE_NO_SYMLINKS)?;
    bind(&source, target, roots)
}

/// Leaves nothing of the stage; what is not there is no error.
fn unstage(roots: &Roots) {
    let sandbox = roots.sandbox.as_raw_fd();
    if let Ok(stage) = openat2(sandbox, STAGE, libc::O_PATH, libc::RESOLVE_NO_SYMLINKS) {
        let mut buffer = [0; 32];
        let path = fd_path(&stage, &mut buffer);
        // SAFETY: a path that ends with NUL. WHY: std does not unmount.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
    // SAFETY: a name that ends with NUL. WHY: std removes nothing below a descriptor.
    unsafe { libc::unlinkat(sandbox, STAGE.as_ptr(), libc::AT_REMOVEDIR) };
}

/// Makes a mounted tree the root of this process, which is in a mount namespace of its own.
pub(super) fn pivot_to(rootfs: &Path) -> io::Result<()> {
    mount(None, c"/", None, libc::MS_REC | libc::MS_SLAVE, None)?;
    pivot(&open(&text(rootfs)?)?)
}

/// Makes `rootfs` the root and lets the old one go.
fn pivot(rootfs: &OwnedFd) -> io::Result<()> {
    // SAFETY: descriptors and constant strings only. WHY: std has neither call.
    unsafe {
        done(libc::fchdir(rootfs.as_raw_fd()))?;
        done(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) as libc::c_int)?;
        done(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        done(libc::chdir(c"/".as_ptr()))
    }
}
