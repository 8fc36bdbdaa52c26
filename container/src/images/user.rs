//! Users of images: `user[:group]`, by number or by a name in the image's own files.
//!
//! The files are read from the layers, because nothing is mounted yet. Blocking; follows no link.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::fault::UserFault;
use crate::host::beneath;
use crate::host::user::Identity;

const FILE_BYTES_MAX: u64 = 1 << 20;

/// Resolves `user` of an image; `layers` are its own, the lowest first.
pub(super) fn resolve(user: &str, layers: &[PathBuf]) -> Result<Identity, UserFault> {
    let passwd = find(layers, "passwd").unwrap_or_default();
    let group = find(layers, "group").unwrap_or_default();
    identity(user, &passwd, &group)
}

fn identity(user: &str, passwd: &str, group: &str) -> Result<Identity, UserFault> {
    let (name, group_name) = user.split_once(':').map_or((user, None), |(user, group)| (user, Some(group)));
    let known = lines(passwd).find(|line| line[0] == name || line.get(2) == Some(&name));
    let uid = match (number(name), &known) {
        (Some(uid), _) => uid,
        (None, Some(line)) => field(line, 2)?,
        (None, None) => return Err(UserFault::User(name.to_owned())),
    };
    let own = lines(group).find(|line| Some(line[0]) == group_name);
    let gid = match (group_name.map(|name| (name, number(name))), own, &known) {
        (Some((_, Some(gid))), _, _) => gid,
        (Some(_), Some(line), _) => field(&line, 2)?,
        (Some((name, None)), None, _) => {
            return Err(UserFault::Group(name.to_owned()));
        }
        (None, _, Some(line)) => field(line, 3)?,
        (None, _, None) => 0,
    };
    let mut groups = vec![gid];
    if let (None, Some(line)) = (group_name, &known) {
        let is_in =
            |group: &Vec<&str>| group.get(3).is_some_and(|all| all.split(',').any(|one| one == line[0]));
        groups.extend(
            lines(group).filter(is_in).filter_map(|group| number(group.get(2)?)).filter(|one| *one != gid),
        );
    }
    Ok(Identity { uid, gid, groups })
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|line| line.len() >= 3)
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

fn field(line: &[&str], index: usize) -> Result<u32, UserFault> {
    let number = line.get(index).and_then(|text| number(text));
    number.ok_or_else(|| UserFault::Damaged(line[0].to_owned()))
}

/// The file of the highest layer that has it, unless a higher one deletes it.
fn find(layers: &[PathBuf], name: &str) -> Option<String> {
    for layer in layers.iter().rev() {
        if let Some(text) = read(layer, name) {
            return Some(text);
        }
        let hides = [format!("etc/.wh.{name}"), String::from("etc/.wh..wh..opq"), String::from(".wh.etc")];
        let is_device = |path: &str| {
            let meta = std::fs::symlink_metadata(layer.join(path));
            meta.is_ok_and(|meta| meta.file_type().is_char_device() && meta.rdev() == 0)
        };
        let hides = hides.iter().any(|path| layer.join(path).symlink_metadata().is_ok());
        if hides || is_device(&format!("etc/{name}")) || is_device("etc") {
            return None;
        }
    }
    None
}

fn read(layer: &Path, name: &str) -> Option<String> {
    let etc = beneath::open_dir(layer, Path::new("etc")).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&etc, name, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_users_are_resolved_by_passwd_and_group() {
        let passwd = "root:x:0:0::/:/bin/sh\nweb:x:33:34::/:/bin/sh\n";
        let group = "root:x:0:\nwww:x:34:\nlog:x:4:root,web\n";
        for (user, expected) in [
            ("root", "0 0 [0, 4]"),
            ("web", "33 34 [34, 4]"),
            ("33", "33 34 [34, 4]"),
            ("web:log", "33 4 [4]"),
            ("1000", "1000 0 [0]"),
            ("1000:2000", "1000 2000 [2000]"),
            ("nobody", "the image's user 'nobody' is not in its /etc/passwd"),
            ("web:none", "the image's group 'none' is not in its /etc/group"),
        ] {
            let shown = match identity(user, passwd, group) {
                Ok(found) => format!("{} {} {:?}", found.uid, found.gid, found.groups),
                Err(fault) => fault.to_string(),
            };
            assert_eq!(shown, expected, "{user}");
        }
    }

    #[test]
    fn passwd_file_of_the_uppermost_layer_is_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let layers: Vec<PathBuf> = ["1", "2", "3"].map(|name| dir.path().join(name)).to_vec();
        for (layer, text) in layers.iter().zip(["one", "two", "three"]) {
            std::fs::create_dir_all(layer.join("etc")).expect("made");
            std::fs::write(layer.join("etc/passwd"), text).expect("written");
        }
        assert_eq!(find(&layers, "passwd").as_deref(), Some("three"));
        std::fs::remove_file(layers[2].join("etc/passwd")).expect("removed");
        assert_eq!(find(&layers, "passwd").as_deref(), Some("two"));
        std::fs::write(layers[2].join("etc/.wh.passwd"), "").expect("written");
        assert_eq!(find(&layers, "passwd"), None);
        std::os::unix::fs::symlink("/etc/passwd", layers[2].join("etc/passwd")).expect("linked");
        assert_eq!(find(&layers, "passwd"), None, "a link may lead anywhere");
    }
}
