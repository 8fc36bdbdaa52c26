//! Why files could not be fetched.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use http::{HeaderValue, StatusCode};

/// Why the files of a container could not be fetched. The text goes to the framework.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchFault {
    #[error("Failed to fetch '{uri}': {fault}")]
    Uri { uri: String, fault: UriFault },
    #[error("the sandbox is not below the work directory")]
    SandboxOutside,
    #[error("the fetcher gave a wrong answer")]
    WrongAnswer,
    /// In the words of the helper.
    #[error("{0}")]
    Helper(String),
}

/// Why a URI is not fetched.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UriFault {
    #[error("it is empty or has a character that is not allowed")]
    Characters,
    #[error("'output_file' must be relative and stay inside the sandbox")]
    OutputFile,
    #[error("it does not end with a file name")]
    NoFileName,
    #[error("a file URI must have an absolute path")]
    RelativeFile,
    #[error("a relative path needs the agent's --frameworks_home")]
    NoFrameworksHome,
    #[error("it has no host or no path")]
    NoHostOrPath,
    #[error("scheme '{0}' is not supported (file, http and https are)")]
    Scheme(String),
}

/// Why one file could not be brought.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("it is larger than the cache")]
    TooLarge,
    #[error("the sandbox would hold more than the container's disk of {0} bytes")]
    AboveDisk(u64),
    #[error("the sandbox would hold more than {0} bytes (--fetcher_max_size of the agent)")]
    AboveLimit(u64),
    #[error("it is not a URL: {0}")]
    Url(#[from] http::uri::InvalidUri),
    #[error("cannot send the request: the URL has no host")]
    NoHost,
    #[error("cannot send the request: {0}")]
    Request(http::Error),
    #[error("no certificates to trust: {0}")]
    NoCertificates(io::Error),
    #[error("cannot reach '{host}': {}", chain(.err))]
    Unreachable { host: String, err: hyper_util::client::legacy::Error },
    #[error("the server answered {0}")]
    Status(StatusCode),
    #[error("it is redirected to an unusable place: {0:?}")]
    Redirect(HeaderValue),
    #[error("it is redirected more than {0} times")]
    Redirects(usize),
    #[error("no data for {0} seconds")]
    Stalled(f64),
    #[error("the download broke off: {}", chain(.0))]
    Interrupted(hyper::Error),
    #[error("'{}' is not a file", .0.display())]
    NotFile(PathBuf),
    #[error("cannot extract it: '{0}' is not installed on this agent")]
    NoTool(&'static str),
    #[error("cannot extract it: '{tool}' exited with {status}")]
    Tool { tool: &'static str, status: ExitStatus },
    #[error("{what}: {err}")]
    Io { what: String, err: io::Error },
}

impl Fault {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Fault {
        let what = what.into();
        move |err| Fault::Io { what, err }
    }
}

/// An error with its causes, which is where the useful part is.
pub(crate) fn chain(err: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(err.source(), |err| err.source());
    causes.fold(err.to_string(), |text, cause| format!("{text}: {cause}"))
}
