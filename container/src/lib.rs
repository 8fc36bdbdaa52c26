//! Containers on Linux: how commands become processes with a sandbox, and how all of them end.
//!
//! [`Containerizer`] takes the agent's `ContainerOp`s and answers with `ContainerEvent`s. What outlives the agent is our
//! own program, started again as a small helper: [`init_main`] must be reachable as its [`HELPER_COMMAND`].
//! `unsafe` lives in `host` and `launcher` only.

#![deny(unsafe_code)]

mod cgroups;
mod containerizer;
mod destroy_all;
mod docker;
mod docker_volume;
mod fetcher;
mod host;
mod images;
mod isolation;
mod isolators;
mod launcher;
mod meter;
mod plan;
mod pulls;
mod runtime_dir;
mod sandbox;
mod secrets;
mod stdio;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

pub use cgroups::devices::AllowedDevice;
pub use cgroups::machine::{MachineMemory, pressure};
pub use containerizer::{Containerizer, ContainerizerFault, Counts, Options};
pub use destroy_all::destroy_all;
pub use docker::DockerOptions;
pub use docker_volume::DockerVolumeOptions;
pub use fetcher::FetcherCounts;
pub use host::open_files::raise_open_files;
#[cfg(feature = "fuzz")]
pub use images::fuzz;
pub use images::{
    Backend, DocumentFault, EntryFault, HelperFault, ImageFault, ImageOptions, LoginFault, Logins,
    RegistryFault, UserFault, image_names,
};
pub use isolation::{Isolation, IsolationFault};
pub use isolators::used_bytes as disk_used;
pub use isolators::{
    DeviceFault, FlagFault, IsolatorOptions, OptionsFault, parse_capabilities, parse_devices, ports,
};
pub use launcher::CgroupFault;
pub use launcher::linux::{CgroupOptions, Launcher, isolation_of_host};
pub use meter::Meter;
pub use secrets::SecretDirectoryFault;
pub use stdio::{AttachFault, ContainerLogger, Input, Output, Piece, Rotation, RotationFault, Writer};
pub use usage::{DiskUse, Memory, Shortages, Throttled, Usage};

/// The hidden command of our program that [`init_main`] serves.
pub const HELPER_COMMAND: &str = "container-init";

/// Whether cgroups can be made below `root` on this machine by this user; if not, why.
pub fn cgroups_usable(root: &std::path::Path) -> Result<(), CgroupFault> {
    launcher::linux::usable(root).map(drop)
}

const SUPERVISE: &str = "supervise";
const FETCH: &str = "fetch";
const REMOUNT: &str = "remount";
const DOCKER: &str = "docker";
const INSIDE: &str = "inside";

/// The helper's entry point, with the arguments that follow [`HELPER_COMMAND`]. A program calls it before anything
/// else: no thread may run yet. Only the Docker run and the task entry read the environment.
pub fn init_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let done = match args.first().and_then(|arg| arg.to_str()) {
        Some(SUPERVISE) => launcher::init::supervise().map(|()| ExitCode::SUCCESS),
        Some(FETCH) => fetcher::job::work().map(|()| ExitCode::SUCCESS),
        Some(REMOUNT) => launcher::remount::work().map(|()| ExitCode::SUCCESS),
        Some(DOCKER) => docker::run::work(),
        Some(INSIDE) => launcher::task_entry::work(&args[1..]).map(|()| ExitCode::SUCCESS),
        _ => {
            eprintln!("{HELPER_COMMAND} is for the agent's own use");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(code) => code,
        Err(err) => {
            eprintln!("{HELPER_COMMAND}: {err}");
            ExitCode::FAILURE
        }
    }
}
