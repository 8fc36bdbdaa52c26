//! GET_QUOTA and `/quota`: the quotas of a snapshot.

use tepui_core_master::State;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::quota::{QuotaInfo, QuotaStatus};

/// All quotas, also in the old form, which has guarantees only.
pub(crate) fn status(state: &State) -> QuotaStatus {
    QuotaStatus {
        infos: state.quotas.values().map(|config| old_form(config)).collect(),
        configs: state.quotas.values().map(|config| (**config).clone()).collect(),
        ..Default::default()
    }
}

fn old_form(config: &pb::quota::QuotaConfig) -> QuotaInfo {
    let resource = |(name, amount): (&String, &pb::value::Scalar)| pb::Resource {
        name: name.clone(),
        r#type: pb::value::Type::SCALAR,
        scalar: amount.clone().into(),
        ..Default::default()
    };
    let guarantee = config.guarantees.iter().map(resource).collect();
    QuotaInfo { role: Some(config.role.clone()), guarantee, ..Default::default() }
}
