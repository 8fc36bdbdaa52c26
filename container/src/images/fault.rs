//! Why an image cannot be had. The text goes to the framework or to the operator.

use std::io;
use std::path::PathBuf;

use crate::host::background::Interrupted;

#[derive(Debug, thiserror::Error)]
pub enum ImageFault {
    #[error("the image '{image}': {fault}")]
    Of { image: String, fault: Box<ImageFault> },
    #[error("the image '{image}' in '{}': {fault}", directory.display())]
    InDirectory { image: String, directory: PathBuf, fault: Box<ImageFault> },
    #[error("layer {number} of {count}: {fault}")]
    Layer { number: usize, count: usize, fault: Box<ImageFault> },
    #[error("image '{image}' not found: neither '{written}.tar' nor '{written}/' exists in '{}'", directory.display())]
    NotFound { image: String, written: String, directory: PathBuf },
    #[error("'{0}' is not the name of an image: [host/]repository[:tag] or [host/]repository@digest")]
    Name(String),
    #[error("only images of the type DOCKER are supported")]
    Type,
    #[error("the secret of its credentials has no value")]
    NoSecretValue,
    #[error("No executable is found: neither the command nor the image names one")]
    NoExecutable,
    #[error("--docker_store_dir must be an absolute path, not '{}'", .0.display())]
    RelativeStore(PathBuf),
    #[error("--docker_registry={0} is neither a directory nor http(s)://host[:port]")]
    RegistryFlag(String),
    #[error("{what}: {err}")]
    Io { what: String, err: io::Error },
    #[error(transparent)]
    PlainIo(#[from] io::Error),
    #[error(transparent)]
    Document(#[from] DocumentFault),
    #[error(transparent)]
    Entry(#[from] EntryFault),
    #[error(transparent)]
    Registry(#[from] RegistryFault),
    #[error(transparent)]
    Login(#[from] LoginFault),
    #[error(transparent)]
    User(#[from] UserFault),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// A manifest, index, configuration or digest is not what it must be.
#[derive(Debug, thiserror::Error)]
pub enum DocumentFault {
    #[error("invalid {what}: {err}")]
    Json { what: &'static str, err: serde_json::Error },
    #[error("'{0}' is not a digest: sha256: and 64 hexadecimal digits")]
    Digest(String),
    #[error("{what} is damaged: its digest is {found}, not {expected}")]
    Damaged { what: String, found: String, expected: String },
    #[error("{what} has {bytes} bytes, more than {bytes_max}")]
    TooLarge { what: String, bytes: u64, bytes_max: u64 },
    #[error("the manifest is of schema {0}, only 2 is supported")]
    Schema(u32),
    #[error("the image has no variant for linux/{0}")]
    Architecture(&'static str),
    #[error("the image has {count} layers, more than {count_max}")]
    TooManyLayers { count: usize, count_max: usize },
    #[error("the configuration lists {configuration} layers, the manifest {manifest}")]
    LayerCounts { configuration: usize, manifest: usize },
    #[error("the manifest names no configuration")]
    NoConfiguration,
    #[error("it has neither a {docker} nor an {oci}")]
    NoManifest { docker: &'static str, oci: &'static str },
    #[error("'{0}' is missing")]
    Missing(String),
    #[error("the archive contains more than {0} files")]
    TooManyFiles(usize),
    #[error("none of its {0} images is called so")]
    NoneCalledSo(usize),
    #[error("none of its images is called '{0}'")]
    NoneCalled(String),
    #[error("its indexes lead to others more than {0} times")]
    IndexDepth(usize),
}

/// An entry of a layer cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum EntryFault {
    #[error("'{}': {fault}", path.display())]
    At { path: PathBuf, fault: Box<EntryFault> },
    #[error("a hard link to '{}': {fault}", to.display())]
    HardLink { to: PathBuf, fault: Box<EntryFault> },
    #[error("the path contains '..'")]
    ParentDirectory,
    #[error("the path is absolute")]
    Absolute,
    #[error("the path has more than {0} parts")]
    Depth(usize),
    #[error("the path traverses a link or a file")]
    ThroughLink,
    #[error("the layer contains more than {0} entries")]
    Entries(u64),
    #[error("the layer contains more than {0} bytes")]
    Bytes(u64),
    #[error("a device outside of /dev")]
    Device,
    #[error("a hard link without a target")]
    LinkToNothing,
    #[error("a whiteout without a name")]
    WhiteoutOfNothing,
    #[error("{0}")]
    Io(io::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum RegistryFault {
    #[error("no data from the registry for {0} seconds")]
    Stalled(u64),
    #[error("the answer of the registry broke off: {0}")]
    BrokenAnswer(String),
    #[error("the download broke off: {0}")]
    BrokenDownload(String),
    #[error("{0}")]
    Download(String),
    #[error("'{place}' answered {status}: {text}")]
    Status { place: String, status: http::StatusCode, text: String },
    #[error("a layer has more than {0} bytes")]
    LayerBytes(u64),
    #[error("'{0}' is not a path")]
    Path(String),
    #[error("it leads to an unusable place")]
    Redirect,
    #[error("it leads on more than {0} times")]
    Redirects(usize),
    #[error("the registry requires authentication of an unspecified kind")]
    NoChallenge,
    #[error("the registry requires authentication of the unsupported kind '{0}'")]
    Challenge(String),
    #[error("the registry '{0}' requires credentials; add them to --docker_config")]
    NoCredentials(String),
    #[error("the registry requires a token but names no realm")]
    NoRealm,
    #[error("'{0}' is not a valid token realm")]
    Realm(String),
    #[error("invalid token of the registry: {0}")]
    Token(serde_json::Error),
    #[error("the token of the registry cannot be used")]
    UnusableToken,
}

#[derive(Debug, thiserror::Error)]
pub enum LoginFault {
    #[error("invalid registry credentials: {0}")]
    Json(#[from] serde_json::Error),
    #[error("'{}' cannot be the name of a credential helper", .0.escape_debug())]
    HelperName(String),
    #[error("the credential helper '{program}' failed: {why}")]
    Helper { program: String, why: HelperFault },
}

#[derive(Debug, thiserror::Error)]
pub enum HelperFault {
    #[error("it took more than {0} seconds")]
    Late(u64),
    #[error("its answer is invalid")]
    Answer,
    #[error("{0}")]
    Reported(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum UserFault {
    #[error("the image's user '{0}' is not in its /etc/passwd")]
    User(String),
    #[error("the image's group '{0}' is not in its /etc/group")]
    Group(String),
    #[error("the image's files about users are damaged at '{0}'")]
    Damaged(String),
}

impl ImageFault {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ImageFault {
        let what = what.into();
        move |err| ImageFault::Io { what, err }
    }

    pub(super) fn of(image: impl ToString) -> impl Fn(ImageFault) -> ImageFault {
        let image = image.to_string();
        move |fault| ImageFault::Of { image: image.clone(), fault: fault.into() }
    }
}
