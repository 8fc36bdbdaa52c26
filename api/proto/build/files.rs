//! Files of the build: finds the `.proto` files and writes output only if it changed.

use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Every `.proto` file below `root`, named relative to it, in a fixed order.
pub fn proto_files(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    collect(root, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue; // Not a name that a .proto import could spell.
        };
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{prefix}{name}/"), found)?;
        } else if name.ends_with(".proto") {
            found.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// Keeps the time stamp of a file whose content is already right, so that cargo does not rebuild for it.
pub fn write_if_changed(path: &Path, content: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    std::fs::write(path, content)
}

/// Sets an old modification time. Cargo watches this file although the build writes it, and would rebuild everything for a
/// file that is newer than the start of the build.
pub fn make_old(path: &Path) -> io::Result<()> {
    std::fs::File::options().write(true).open(path)?.set_modified(SystemTime::UNIX_EPOCH)
}
