//! Entries of directories, as `ls -l` would describe them.

use std::ffi::CStr;
use std::os::fd::AsRawFd;

use nix::unistd::{Gid, Group, Uid, User};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;

use super::FilesError;
use super::open::Directory;

/// What a listing shows at most.
const ENTRIES_MAX: usize = 100_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub path: String,
    nlink: i32,
    size: u64,
    mtime_secs: i64,
    mode: u32,
    user: String,
    group: String,
}

impl Entry {
    pub fn write(&self, w: &mut JsonWriter) {
        w.object(|w| {
            w.field("gid", &self.group);
            w.field("mode", &mode_text(self.mode));
            w.field("mtime", &(self.mtime_secs as f64));
            w.field("nlink", &self.nlink);
            w.field("path", &self.path);
            w.field("size", &self.size);
            w.field("uid", &self.user);
        });
    }

    pub fn to_proto(&self) -> pb::FileInfo {
        let nanoseconds = self.mtime_secs.saturating_mul(1_000_000_000);
        pb::FileInfo {
            path: self.path.clone(),
            nlink: Some(self.nlink),
            size: Some(self.size),
            mtime: pb::TimeInfo { nanoseconds, ..Default::default() }.into(),
            mode: Some(self.mode),
            uid: Some(self.user.clone()),
            gid: Some(self.group.clone()),
            ..Default::default()
        }
    }
}

/// The entries of a directory under their virtual paths. Links are shown as what they point to, unless that is not in
/// the sandbox: then as links. What points nowhere is left out.
pub(super) fn entries(directory: &Directory, path: &str) -> Result<Vec<Entry>, FilesError> {
    let path = path.trim_end_matches('/');
    let mut all = Vec::new();
    for found in Dir::read_from(&directory.fd).map_err(|err| FilesError::Io(err.into()))?.take(ENTRIES_MAX) {
        let found = found.map_err(|err| FilesError::Io(err.into()))?;
        let name = found.file_name().to_string_lossy().into_owned();
        if name == "." || name == ".." {
            continue;
        }
        let flags = match points_outside(directory, found.file_name()) {
            true => AtFlags::SYMLINK_NOFOLLOW,
            false => AtFlags::empty(),
        };
        let Ok(stat) = statat(&directory.fd, found.file_name(), flags) else { continue };
        all.push(Entry {
            path: format!("{path}/{name}"),
            nlink: i32::try_from(stat.st_nlink).unwrap_or(i32::MAX),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mtime_secs: stat.st_mtime,
            mode: stat.st_mode,
            user: user_name(stat.st_uid),
            group: group_name(stat.st_gid),
        });
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

fn points_outside(directory: &Directory, name: &CStr) -> bool {
    let name = name.to_string_lossy();
    let path = format!("/proc/self/fd/{}/{name}", directory.fd.as_raw_fd());
    std::fs::canonicalize(path).is_ok_and(|target| !target.starts_with(&directory.root))
}

fn user_name(id: u32) -> String {
    let user = User::from_uid(Uid::from_raw(id)).ok().flatten();
    user.map_or_else(|| id.to_string(), |user| user.name)
}

fn group_name(id: u32) -> String {
    let group = Group::from_gid(Gid::from_raw(id)).ok().flatten();
    group.map_or_else(|| id.to_string(), |group| group.name)
}

/// `-rw-r--r--`
fn mode_text(mode: u32) -> String {
    let kind = match FileType::from_raw_mode(mode) {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::BlockDevice => 'b',
        FileType::CharacterDevice => 'c',
        FileType::Fifo => 'p',
        FileType::Socket => 's',
        FileType::RegularFile | FileType::Unknown => '-',
    };
    let bit = |shift: u32, letter: char| if mode >> shift & 1 == 1 { letter } else { '-' };
    let bits = [(8, 'r'), (7, 'w'), (6, 'x'), (5, 'r'), (4, 'w'), (3, 'x'), (2, 'r'), (1, 'w'), (0, 'x')];
    std::iter::once(kind).chain(bits.into_iter().map(|(shift, letter)| bit(shift, letter))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_modes_are_formatted_as_in_ls() {
        assert_eq!(mode_text(0o100_644), "-rw-r--r--");
        assert_eq!(mode_text(0o040_755), "drwxr-xr-x");
        assert_eq!(mode_text(0o120_777), "lrwxrwxrwx");
    }
}
