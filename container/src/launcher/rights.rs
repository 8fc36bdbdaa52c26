//! What a process may do: limits, capabilities, privileges, system calls; and becoming its user among them.
//!
//! Everything that needs memory is made before the fork; the rest is system calls.

use std::io;

use nix::unistd::Gid;

use super::failure::Failure;
use crate::host::user::Identity;
use crate::plan::{Capabilities, Filter, Plan, Rlimit};

/// No kernel has more.
const CAPABILITIES_MAX: u32 = 64;
/// Of the struct the kernel takes: two times 32 bits.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// All rights of a plan, ready to be taken.
pub(super) struct Rights {
    rlimits: Vec<Rlimit>,
    identity: Option<Identity>,
    groups: Vec<Gid>,
    capabilities: Option<Capabilities>,
    no_new_privs: bool,
    filters: Vec<Vec<libc::sock_filter>>,
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

impl Rights {
    pub fn new(plan: &Plan, identity: Option<&Identity>) -> Rights {
        let groups = identity.iter().flat_map(|user| &user.groups).copied().map(Gid::from_raw);
        Rights {
            rlimits: plan.rlimits.clone(),
            groups: groups.collect(),
            identity: identity.cloned(),
            capabilities: plan.capabilities,
            no_new_privs: plan.no_new_privs,
            filters: plan.seccomp.iter().map(program).collect(),
        }
    }

    /// Applies them, for good. A filter may only be installed by a process that has all rights or can gain none, so
    /// it comes as late as possible: the steps before may need system calls that it denies.
    pub fn take(&self) -> Result<(), Failure> {
        for (index, limit) in self.rlimits.iter().enumerate() {
            set_limit(limit).map_err(|err| Failure::of_rlimit(index, &err))?;
        }
        if self.no_new_privs {
            prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(Failure::at("no new privileges"))?;
        } else {
            self.install().map_err(Failure::at("the seccomp filter"))?;
        }
        if let Some(sets) = &self.capabilities {
            drop_bounding(sets.bounding).map_err(Failure::at("bounding capabilities"))?;
            let keep = libc::c_ulong::from(sets.effective.is_some());
            prctl(libc::PR_SET_KEEPCAPS, keep).map_err(Failure::at("capabilities"))?;
        }
        if let Some(identity) = &self.identity {
            identity.assume_with(&self.groups).map_err(Failure::at("its user"))?;
        }
        if let Some(effective) = self.capabilities.and_then(|sets| sets.effective) {
            set_capabilities(effective).map_err(Failure::at("effective capabilities"))?;
        }
        if self.no_new_privs {
            self.install().map_err(Failure::at("the seccomp filter"))?;
        }
        Ok(())
    }

    fn install(&self) -> io::Result<()> {
        for filter in &self.filters {
            let program =
                libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_ptr().cast_mut() };
            // SAFETY: the kernel copies the program, which lives longer than the call. WHY: no wrapper.
            done(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program) })?;
        }
        Ok(())
    }
}

fn program(filter: &Filter) -> Vec<libc::sock_filter> {
    filter.0.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect()
}

fn set_limit(limit: &Rlimit) -> io::Result<()> {
    let value = |limit: Option<u64>| limit.unwrap_or(libc::RLIM_INFINITY);
    let limits = libc::rlimit { rlim_cur: value(limit.soft), rlim_max: value(limit.hard) };
    // SAFETY: the struct is ours. WHY: no wrapper takes numbers.
    done(unsafe { libc::setrlimit(limit.resource as _, &limits) }.into())
}

/// Capabilities that the kernel does not have cannot be dropped.
fn drop_bounding(kept: u64) -> io::Result<()> {
    for number in (0..CAPABILITIES_MAX).filter(|number| kept & (1 << number) == 0) {
        match prctl(libc::PR_CAPBSET_DROP, number.into()) {
            Err(err) if err.raw_os_error() == Some(libc::EINVAL) => break,
            dropped => dropped?,
        }
    }
    Ok(())
}

fn set_capabilities(set: u64) -> io::Result<()> {
    let half = |bits: u64| {
        let bits = bits as u32;
        CapabilityData { effective: bits, permitted: bits, inheritable: bits }
    };
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let data = [half(set), half(set >> 32)];
    // SAFETY: both structs match the version. WHY: no wrapper.
    done(unsafe { libc::syscall(libc::SYS_capset, &header, data.as_ptr()) })?;
    for number in (0..CAPABILITIES_MAX).filter(|number| set & (1 << number) != 0) {
        // SAFETY: plain numbers. WHY: no wrapper.
        done(
            unsafe {
                libc::prctl(
                    libc::PR_CAP_AMBIENT,
                    libc::PR_CAP_AMBIENT_RAISE,
                    libc::c_ulong::from(number),
                    0,
                    0,
                )
            }
            .into(),
        )?;
    }
    Ok(())
}

fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: plain numbers. WHY: wrappers for some of these allocate.
    done(unsafe { libc::prctl(option, value, 0, 0, 0) }.into())
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
