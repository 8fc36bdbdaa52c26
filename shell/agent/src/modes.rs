//! Modes below the work directory: everything but sandboxes is for the agent alone.
//!
//! Directories on the way to sandboxes can be entered by all users, because tasks use the path of their sandbox, and
//! listed by none. Applied at each start, for directories of older agents.

use std::io;
use std::path::Path;

use tepui_store::{limit_mode, limit_own_directory};

/// Entered by users of sandboxes and of the fetcher's cache.
const PATH_MODE: u32 = 0o711;
const SANDBOX_MODE: u32 = 0o750;

/// `slaves/<agent>/frameworks/<framework>/executors/<executor>/runs/<sandbox>`: so many directories until `<sandbox>`.
const SANDBOX_DEPTH: usize = 7;

/// What agents make in their work directory. There may be other things in it, which are not ours.
const OWN: &[(&str, u32)] = &[
    ("meta", 0o700),
    ("provisioner", 0o700),
    ("store", 0o700),
    ("run", 0o700),
    ("cgroups_mark", 0o600),
    ("slaves", PATH_MODE),
    ("containers", PATH_MODE),
    ("volumes", PATH_MODE),
    ("fetch", PATH_MODE),
];

/// Limits the modes of everything that former agents made too open. What cannot be changed is logged: an agent that is not
/// root may share its directories with one that was.
pub(crate) fn limit(work_dir: &Path, runtime_dir: &Path) {
    let logged = |path: &Path, limited: io::Result<()>| {
        if let Err(err) = limited {
            tracing::warn!(path = %path.display(), %err, "cannot restrict the mode of a directory");
        }
    };
    logged(work_dir, limit_own_directory(work_dir, PATH_MODE));
    for (name, most) in OWN {
        logged(&work_dir.join(name), existing(limit_mode(&work_dir.join(name), *most)));
    }
    let containers = runtime_dir.join("containers");
    logged(&containers, existing(limit_mode(&containers, 0o700)));
    logged(work_dir, limit_above(&work_dir.join("slaves"), SANDBOX_DEPTH));
    logged(work_dir, limit_above(&work_dir.join("containers"), 1));
}

/// What is not there needs no limit.
fn existing(limited: io::Result<()>) -> io::Result<()> {
    match limited {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        limited => limited,
    }
}

/// Limits directories on the way to sandboxes, which are so many levels down, and sandboxes. The content of a sandbox
/// is left to its owner.
fn limit_above(dir: &Path, depth: usize) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        match depth {
            1 => limit_mode(&entry.path(), SANDBOX_MODE)?,
            _ => {
                limit_mode(&entry.path(), PATH_MODE)?;
                limit_above(&entry.path(), depth - 1)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn permissions_of_existing_work_directories_are_tightened() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join("work").join(name);
        let sandbox = "slaves/S0/frameworks/F/executors/e/runs/C";
        for name in ["meta", "provisioner/x", "fetch/cache", "run", &format!("{sandbox}/sub"), "containers/c"]
        {
            std::fs::create_dir_all(at(name)).expect("made");
        }
        for name in ["meta/agent.redb", "cgroups_mark", "others", &format!("{sandbox}/stdout")] {
            std::fs::write(at(name), "").expect("written");
        }
        std::os::unix::fs::symlink(at(sandbox), at("slaves/S0/frameworks/F/executors/e/runs/latest"))
            .expect("made");
        let everything = std::process::Command::new("chmod").args(["-R", "a+rX"]).arg(dir.path()).status();
        assert!(everything.expect("chmod runs").success());
        limit(&at(""), &at("run"));
        let mode = |name: &str| std::fs::metadata(at(name)).expect("there").permissions().mode() & 0o777;
        for (name, expected) in [
            ("", 0o711),
            ("meta", 0o700),
            ("provisioner", 0o700),
            ("run", 0o700),
            ("fetch", 0o711),
            ("cgroups_mark", 0o600),
            ("others", 0o644),
            ("slaves", 0o711),
            ("slaves/S0/frameworks/F/executors/e/runs", 0o711),
            (sandbox, 0o750),
            ("containers/c", 0o750),
        ] {
            assert_eq!(mode(name), expected, "{name}");
        }
        assert_eq!(mode(&format!("{sandbox}/sub")) & 0o055, 0o055, "what is in a sandbox is its user's");
    }
}
