//! Secrets by reference: files of the operator, read when a container is launched.
//!
//! `--secret_dir` has a directory for each principal, and a framework gets only what is in that of its own. Values replace
//! references in the launch at hand, in memory: nothing that is recorded or shown has them.
//! Never followed: symbolic links. Never trusted: what others than the agent's user could have read or replaced.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use tepui_proto::mesos::v1::{self as pb, secret::Reference};
use tepui_types::LaunchSpec;

use crate::host::background::{Interrupted, blocking};

/// Longest value of a file or a credential.
const SECRET_BYTES_MAX: usize = 1024 * 1024;
/// Longest variable with its name, `=` and the NUL at its end: Linux starts no program with a longer one.
const VARIABLE_BYTES_MAX: usize = 128 * 1024;
/// All values of a launch together: a launch can name a secret many times.
const LAUNCH_SECRETS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Rights of others to a secret, and to a directory on the way to it.
const OTHERS_READ: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// Why a launch does not get a secret. The text goes to the framework, and has neither the value nor a path of the host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsFault {
    #[error("the secret '{name}': {fault}")]
    Secret { name: String, fault: SecretFault },
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretFault {
    #[error("this agent has no --secret_dir")]
    NoDirectory,
    #[error("the framework has no principal")]
    NoPrincipal,
    #[error("the principal '{0}' cannot have secrets, because it cannot be the name of a directory")]
    Principal(String),
    #[error("its name and its key must be relative paths without '.' and '..'")]
    Name,
    #[error("the principal '{0}' has no secret of this name")]
    Missing(String),
    #[error("only the agent's user may have access to its file (mode 0600), which must not be a link")]
    File,
    #[error("only the agent's user may have write access to the directories of its file")]
    Directory,
    #[error("it has more than {0} bytes")]
    TooLong(usize),
    #[error("the secrets of the launch have more than {LAUNCH_SECRETS_BYTES_MAX} bytes")]
    LaunchTooLong,
    #[error("it is not text without NUL, as the value of a variable must be")]
    NotText,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why the directory of the operator cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretDirectoryFault {
    #[error("it must be an absolute path")]
    Relative,
    #[error("only the agent's user may have write access to it")]
    Shared,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Checks the operator's directory at the start of the agent.
pub(crate) fn check(root: &Path) -> Result<(), SecretDirectoryFault> {
    if !root.is_absolute() {
        return Err(SecretDirectoryFault::Relative);
    }
    match open_root(root) {
        Ok(_) => Ok(()),
        Err(SecretFault::Io(err)) => Err(err.into()),
        Err(_) => Err(SecretDirectoryFault::Shared),
    }
}

/// The launch with the values of its secrets; none if it has no references.
pub(crate) async fn resolve(
    root: Option<&Path>,
    spec: &LaunchSpec,
) -> Result<Option<LaunchSpec>, SecretsFault> {
    let mut spec = spec.clone();
    if spec.secrets.variables.is_empty() && unresolved(spec.container.as_mut()).is_empty() {
        return Ok(None);
    }
    let root = root.map(Path::to_owned);
    blocking(move || fill(root.as_deref(), &mut spec).map(|()| Some(spec))).await?
}

fn fill(root: Option<&Path>, spec: &mut LaunchSpec) -> Result<(), SecretsFault> {
    let principal = spec.secrets.principal.as_deref();
    let mut budget = LAUNCH_SECRETS_BYTES_MAX;
    for (name, reference) in &spec.secrets.variables {
        let bytes_max = VARIABLE_BYTES_MAX.saturating_sub(name.len() + "=\0".len());
        let value = read(root, principal, reference, bytes_max)
            .and_then(|value| charge(&mut budget, value))
            .and_then(text);
        spec.environment.insert(name.clone(), value.map_err(fault_of(reference))?);
    }
    for secret in unresolved(spec.container.as_mut()) {
        let value = read(root, principal, &secret.reference, SECRET_BYTES_MAX)
            .and_then(|value| charge(&mut budget, value));
        let data = value.map_err(fault_of(&secret.reference))?;
        secret.value = pb::secret::Value { data, ..Default::default() }.into();
    }
    Ok(())
}

fn fault_of(reference: &Reference) -> impl Fn(SecretFault) -> SecretsFault {
    |fault| SecretsFault::Secret { name: full_name(reference), fault }
}

fn charge(budget: &mut usize, value: Vec<u8>) -> Result<Vec<u8>, SecretFault> {
    *budget = budget.checked_sub(value.len()).ok_or(SecretFault::LaunchTooLong)?;
    Ok(value)
}

fn text(value: Vec<u8>) -> Result<String, SecretFault> {
    String::from_utf8(value).ok().filter(|text| !text.contains('\0')).ok_or(SecretFault::NotText)
}

fn full_name(reference: &Reference) -> String {
    match &reference.key {
        Some(key) => format!("{}/{key}", reference.name),
        None => reference.name.clone(),
    }
}

/// Secrets of volumes and of images without a value.
fn unresolved(container: Option<&mut pb::ContainerInfo>) -> Vec<&mut pb::Secret> {
    let Some(container) = container else { return Vec::new() };
    let mut all = Vec::new();
    for volume in &mut container.volumes {
        all.extend(volume.source.as_option_mut().and_then(|source| source.secret.as_option_mut()));
        all.extend(volume.image.as_option_mut().and_then(of_image));
    }
    let image = container.mesos.as_option_mut().and_then(|mesos| mesos.image.as_option_mut());
    all.extend(image.and_then(of_image));
    all.retain(|secret| !secret.value.is_set());
    all
}

fn of_image(image: &mut pb::Image) -> Option<&mut pb::Secret> {
    image.docker.as_option_mut()?.config.as_option_mut()
}

fn read(
    root: Option<&Path>,
    principal: Option<&str>,
    reference: &Reference,
    bytes_max: usize,
) -> Result<Vec<u8>, SecretFault> {
    let root = root.ok_or(SecretFault::NoDirectory)?;
    let principal = principal.ok_or(SecretFault::NoPrincipal)?;
    if !is_path(principal) || principal.contains('/') {
        return Err(SecretFault::Principal(principal.to_owned()));
    }
    let name = full_name(reference);
    if !is_path(&name) {
        return Err(SecretFault::Name);
    }
    let file = open(root, principal, &name).map_err(|fault| match fault {
        SecretFault::Io(err)
            if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            SecretFault::Missing(principal.to_owned())
        }
        other => other,
    })?;
    let mut value = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut value)?;
    if value.len() > bytes_max { Err(SecretFault::TooLong(bytes_max)) } else { Ok(value) }
}

/// Whether every part can be the name of a file.
fn is_path(text: &str) -> bool {
    text.split('/').all(|part| !matches!(part, "" | "." | "..")) && !text.contains('\0')
}

/// Each step is checked on the open descriptor: what its name leads to may change meanwhile.
fn open(root: &Path, principal: &str, name: &str) -> Result<File, SecretFault> {
    let mut directory = open_root(root)?;
    let (parents, file) = name.rsplit_once('/').map_or((None, name), |(parents, file)| (Some(parents), file));
    for part in [principal].into_iter().chain(parents.into_iter().flat_map(|parents| parents.split('/'))) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        directory = checked(rustix::fs::openat(&directory, part, flags, Mode::empty()))?;
    }
    // Opening a pipe must not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(&directory, file, flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NXIO) => return Err(SecretFault::File),
        opened => opened.map_err(io::Error::from)?,
    };
    let is_file = |kind| kind == FileType::RegularFile;
    if is_owned(&file, OTHERS_READ, is_file)? { Ok(File::from(file)) } else { Err(SecretFault::File) }
}

/// The operator may give a path with links.
fn open_root(root: &Path) -> Result<OwnedFd, SecretFault> {
    checked(rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()))
}

fn checked(opened: rustix::io::Result<OwnedFd>) -> Result<OwnedFd, SecretFault> {
    let directory = opened.map_err(io::Error::from)?;
    let is_directory = |kind| kind == FileType::Directory;
    let is_owned = is_owned(&directory, OTHERS_WRITE, is_directory)?;
    if is_owned { Ok(directory) } else { Err(SecretFault::Directory) }
}

/// Whether it is of the right kind, belongs to the agent's user, and others have none of these rights.
fn is_owned(file: impl AsFd, others: u32, kind: impl Fn(FileType) -> bool) -> io::Result<bool> {
    let stat = rustix::fs::fstat(file)?;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    Ok(is_ours && stat.st_mode & others == 0 && kind(FileType::from_raw_mode(stat.st_mode)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    /// `web/db/password` and more below a directory of the operator.
    fn secrets() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in
            [("web/db/password", "sesame\n"), ("web/token", "t"), ("other/token", "theirs"), ("root", "r")]
        {
            write(&root.path().join(path), text.as_bytes(), 0o600);
        }
        root
    }

    fn write(path: &PathBuf, value: &[u8], mode: u32) {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, value).expect("written");
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("ours");
    }

    fn text(root: &tempfile::TempDir, principal: &str, name: &str, key: Option<&str>) -> String {
        let reference = Reference { name: name.into(), key: key.map(Into::into), ..Default::default() };
        match read(Some(root.path()), Some(principal), &reference, SECRET_BYTES_MAX) {
            Ok(value) => String::from_utf8(value).expect("text"),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn a_principal_reads_its_own_secrets_by_name_and_key() {
        let root = secrets();
        assert_eq!(text(&root, "web", "db/password", None), "sesame\n");
        assert_eq!(text(&root, "web", "db", Some("password")), "sesame\n");
        assert_eq!(text(&root, "other", "token", None), "theirs");
        assert_eq!(
            text(&root, "other", "db/password", None),
            "the principal 'other' has no secret of this name"
        );
        assert_eq!(text(&root, "nobody", "token", None), "the principal 'nobody' has no secret of this name");
        assert_eq!(text(&root, "web", "token/more", None), "the principal 'web' has no secret of this name");
    }

    fn reference(name: &str) -> Reference {
        Reference { name: name.into(), ..Default::default() }
    }

    fn launch(container: &str) -> LaunchSpec {
        LaunchSpec {
            id: tepui_types::ContainerId::root("a"),
            command: Default::default(),
            environment: Default::default(),
            secrets: Default::default(),
            sandbox: String::new(),
            latest_link: None,
            user: None,
            no_root: false,
            container: Some(tepui_proto::json::from_slice(container.as_bytes()).expect("a container")),
            resources: Vec::new(),
            limits: Default::default(),
            volumes: Vec::new(),
            of_task: true,
            holds_tasks: true,
            task: None,
            is_session: false,
        }
    }

    #[test]
    fn references_of_variables_volumes_and_images_get_values() {
        let root = secrets();
        let container = r#"{"type":"MESOS",
            "mesos":{"image":{"type":"DOCKER","docker":{"name":"i","config":{"reference":{"name":"token"}}}}},
            "volumes":[
                {"mode":"RO","container_path":"a","source":{"type":"SECRET","secret":{"reference":{"name":"db","key":"password"}}}},
                {"mode":"RO","container_path":"b","source":{"type":"SECRET","secret":{"value":{"data":"aGk="}}}},
                {"mode":"RO","container_path":"c","image":{"type":"DOCKER","docker":{"name":"j","config":{"reference":{"name":"token"}}}}}]}"#;
        let mut spec = launch(container);
        spec.secrets.variables.insert("PASSWORD".into(), reference("db/password"));
        let fault = fill(Some(root.path()), &mut spec.clone()).expect_err("no principal").to_string();
        assert_eq!(fault, "the secret 'db/password': the framework has no principal");
        spec.secrets.principal = Some("web".into());
        let fault = fill(None, &mut spec.clone()).expect_err("no directory").to_string();
        assert!(fault.contains("has no --secret_dir"), "{fault}");
        fill(Some(root.path()), &mut spec).expect("all are there");
        assert_eq!(spec.environment["PASSWORD"], "sesame\n");
        let data = |secret: &pb::Secret| String::from_utf8(secret.value.data.to_vec()).expect("text");
        let container = spec.container.as_ref().expect("a container");
        let of_volumes = container.volumes[..2].iter().map(|volume| data(&volume.source.secret));
        assert_eq!(of_volumes.collect::<Vec<_>>(), ["sesame\n", "hi"]);
        assert_eq!(data(&container.mesos.image.docker.config), "t");
        assert_eq!(data(&container.volumes[2].image.docker.config), "t");

        spec.secrets.variables.insert("BINARY".into(), reference("binary"));
        write(&root.path().join("web/binary"), b"a\0b", 0o600);
        let fault = fill(Some(root.path()), &mut spec).expect_err("no text").to_string();
        assert!(fault.contains("not text without NUL"), "{fault}");
    }

    #[test]
    fn variables_and_launches_have_limits() {
        let root = secrets();
        let longest = VARIABLE_BYTES_MAX - "V000=\0".len();
        write(&root.path().join("web/variable"), &vec![b'x'; longest], 0o600);
        write(&root.path().join("web/file"), &vec![b'x'; SECRET_BYTES_MAX], 0o600);
        let volume = r#"{"mode":"RO","container_path":"a","source":{"type":"SECRET","secret":{"reference":{"name":"file"}}}}"#;
        let volumes =
            |count: usize| format!(r#"{{"type":"MESOS","volumes":[{}]}}"#, vec![volume; count].join(","));
        let filled = |names: &[String], volume_count: usize| {
            let mut spec = launch(&volumes(volume_count));
            spec.secrets.principal = Some("web".into());
            spec.secrets.variables = names.iter().map(|name| (name.clone(), reference("variable"))).collect();
            fill(Some(root.path()), &mut spec).map_err(|fault| fault.to_string())
        };
        let names = |count: usize| (0..count).map(|index| format!("V{index:03}")).collect::<Vec<_>>();
        assert_eq!(filled(&names(1), 0), Ok(()));
        let too_long = format!("the secret 'variable': it has more than {} bytes", longest - 1);
        assert_eq!(filled(&["V0000".into()], 0), Err(too_long));
        assert_eq!(
            filled(&["x".repeat(VARIABLE_BYTES_MAX)], 0).map_err(|why| why.contains("than 0 bytes")),
            Err(true)
        );

        let above = |name: &str| {
            Err(format!("the secret '{name}': the secrets of the launch have more than 4194304 bytes"))
        };
        assert_eq!(filled(&names(32), 0), Ok(()));
        assert_eq!(filled(&names(33), 0), above("variable"));
        assert_eq!(filled(&[], 4), Ok(()));
        assert_eq!(filled(&names(1), 4), above("file"));
    }

    #[test]
    fn names_lead_nowhere_else() {
        let root = secrets();
        for name in ["../other/token", "/etc/passwd", "db/../token", "", "db//password", "./token", "db/"] {
            let expected = "its name and its key must be relative paths without '.' and '..'";
            assert_eq!(text(&root, "web", name, None), expected, "{name}");
        }
        assert!(text(&root, "web", "db", Some("../token")).contains("without '.' and '..'"));
        for principal in ["", ".", "..", "web/db", "/"] {
            assert!(text(&root, principal, "root", None).contains("cannot have secrets"), "{principal}");
        }
        symlink("../other/token", root.path().join("web/link")).expect("a link");
        symlink("../other", root.path().join("web/folder")).expect("a link");
        assert!(text(&root, "web", "link", None).contains("must not be a link"));
        assert!(text(&root, "web", "folder/token", None).contains("has no secret of this name"));
    }

    #[test]
    fn files_of_others_and_long_ones_are_rejected() {
        let root = secrets();
        let path = |name: &str| root.path().join("web").join(name);
        write(&path("readable"), b"x", 0o640);
        assert!(text(&root, "web", "readable", None).contains("mode 0600"));
        assert!(text(&root, "web", "db", None).contains("mode 0600"), "a directory is no secret");
        write(&path("long"), &vec![b'x'; SECRET_BYTES_MAX + 1], 0o600);
        assert!(text(&root, "web", "long", None).contains("more than 1048576 bytes"));
        let pipe = rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), FileType::Fifo, Mode::RWXU, 0);
        pipe.expect("a pipe");
        assert!(text(&root, "web", "pipe", None).contains("mode 0600"));
        std::fs::set_permissions(path("db"), PermissionsExt::from_mode(0o777)).expect("ours");
        assert!(text(&root, "web", "db/password", None).contains("the directories of its file"));
        assert!(check(root.path()).is_ok());
        std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o770)).expect("ours");
        assert!(matches!(check(root.path()), Err(SecretDirectoryFault::Shared)));
        assert!(matches!(check(Path::new("secrets")), Err(SecretDirectoryFault::Relative)));
    }
}
