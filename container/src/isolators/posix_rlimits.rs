//! posix/rlimits: `RLimitInfo` becomes limits of setrlimit(2).

use tepui_proto::mesos::v1::r_limit_info::r_limit::Type;

use super::fault::{PlanFault, RlimitFault};
use super::site::Site;
use crate::plan::{Plan, Rlimit};

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    let info = site.spec.container.as_ref().and_then(|info| info.rlimit_info.as_option());
    for limit in info.iter().flat_map(|info| &info.rlimits) {
        let kind = limit.r#type.unwrap_or(Type::UNKNOWN);
        let name = format!("{kind:?}");
        let resource = resource(kind).ok_or(PlanFault::Rlimit(RlimitFault::UnknownType))?;
        match (limit.soft, limit.hard) {
            (Some(soft), Some(hard)) if soft > hard => {
                return Err(PlanFault::Rlimit(RlimitFault::SoftAboveHard { name, soft, hard }));
            }
            (Some(_), None) | (None, Some(_)) => {
                return Err(PlanFault::Rlimit(RlimitFault::OneOfTwo(name)));
            }
            (Some(_), Some(_)) | (None, None) => (),
        }
        if plan.rlimits.iter().any(|other| other.resource == resource) {
            return Err(PlanFault::Rlimit(RlimitFault::Twice(name)));
        }
        plan.rlimits.push(Rlimit { name, resource, soft: limit.soft, hard: limit.hard });
    }
    Ok(())
}

fn resource(kind: Type) -> Option<u32> {
    Some(match kind {
        Type::UNKNOWN => return None,
        Type::RLMT_AS => libc::RLIMIT_AS,
        Type::RLMT_CORE => libc::RLIMIT_CORE,
        Type::RLMT_CPU => libc::RLIMIT_CPU,
        Type::RLMT_DATA => libc::RLIMIT_DATA,
        Type::RLMT_FSIZE => libc::RLIMIT_FSIZE,
        Type::RLMT_LOCKS => libc::RLIMIT_LOCKS,
        Type::RLMT_MEMLOCK => libc::RLIMIT_MEMLOCK,
        Type::RLMT_MSGQUEUE => libc::RLIMIT_MSGQUEUE,
        Type::RLMT_NICE => libc::RLIMIT_NICE,
        Type::RLMT_NOFILE => libc::RLIMIT_NOFILE,
        Type::RLMT_NPROC => libc::RLIMIT_NPROC,
        Type::RLMT_RSS => libc::RLIMIT_RSS,
        Type::RLMT_RTPRIO => libc::RLIMIT_RTPRIO,
        Type::RLMT_RTTIME => libc::RLIMIT_RTTIME,
        Type::RLMT_SIGPENDING => libc::RLIMIT_SIGPENDING,
        Type::RLMT_STACK => libc::RLIMIT_STACK,
    })
}
