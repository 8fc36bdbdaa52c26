//! linux/seccomp: which system calls commands may make, by a profile in Docker's format from `--seccomp_config_dir`.
//!
//! A container may name another profile of that directory or ask for none; without a word of its own it gets the
//! operator's. Profiles are read anew for every launch.

mod compile;
mod profile;
mod syscalls;

use std::path::Path;

use tepui_proto::Enumeration;
use tepui_proto::mesos::v1::capability_info::Capability;

use self::compile::Machine;
use self::profile::Profile;
use super::fault::{OptionsFault, PlanFault, SeccompFault};
use super::site::Site;
use super::{IsolatorOptions, linux_capabilities};
use crate::plan::{Filter, Plan};

/// No profile is longer.
const PROFILE_BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    let info = site.linux_info().and_then(|info| info.seccomp.as_option());
    let asked = info.and_then(|info| info.profile_name.as_deref());
    let unconfined = info.and_then(|info| info.unconfined).unwrap_or(false);
    let name = match (asked, unconfined) {
        (Some(_), true) => {
            return Err(PlanFault::ProfileOfUnconfined);
        }
        (None, true) => return Ok(()),
        (asked, false) => asked.or(site.options.seccomp_profile_name.as_deref()),
    };
    if let Some(name) = name {
        let capabilities = plan.capabilities.map_or(u64::MAX, |sets| sets.effective.unwrap_or(sets.bounding));
        let filter = load(site.options, name, capabilities);
        plan.seccomp.push(filter.map_err(|fault| PlanFault::Seccomp { name: name.to_owned(), fault })?);
    }
    Ok(())
}

/// The operator's default applies to tasks without a profile.
pub(crate) fn check(options: &IsolatorOptions) -> Result<(), OptionsFault> {
    if options.seccomp_config_dir.is_none() {
        return Err(OptionsFault::SeccompDirectory);
    }
    match &options.seccomp_profile_name {
        Some(name) => load(options, name, u64::MAX)
            .map(drop)
            .map_err(|fault| OptionsFault::SeccompProfile { name: name.clone(), fault }),
        None => Ok(()),
    }
}

fn load(options: &IsolatorOptions, name: &str, capabilities: u64) -> Result<Filter, SeccompFault> {
    let dir = options.seccomp_config_dir.as_deref().ok_or(SeccompFault::NoDirectory)?;
    if name.is_empty() || name.contains('/') || name == ".." {
        return Err(SeccompFault::Name);
    }
    let text = read(&dir.join(name)).map_err(SeccompFault::Read)?;
    let profile = Profile::parse(&text).map_err(SeccompFault::Invalid)?;
    compile::compile(&profile, &machine()?, capabilities)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(PROFILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

fn machine() -> Result<Machine, SeccompFault> {
    let (architecture, short_name, audit) = match std::env::consts::ARCH {
        "x86_64" => ("SCMP_ARCH_X86_64", "amd64", 0xc000_003e),
        "aarch64" => ("SCMP_ARCH_AARCH64", "arm64", 0xc000_00b7),
        other => return Err(SeccompFault::Unsupported(other)),
    };
    let kernel = rustix::system::uname();
    let kernel = kernel.release().to_str().ok().and_then(compile::version).unwrap_or((0, 0));
    Ok(Machine { architecture, short_name, audit, kernel })
}

/// The kernel's number of a capability as profiles name it: `CAP_SYS_ADMIN`.
fn capability(name: &str) -> Option<u32> {
    let capability = Capability::from_proto_name(name.strip_prefix("CAP_")?)?;
    linux_capabilities::number(capability)
}
