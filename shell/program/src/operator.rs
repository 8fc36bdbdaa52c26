//! Operator calls that both programs have: their shape, and what is answered from the process alone.

use std::time::Duration;

use http::StatusCode;
use tepui_http::{HttpError, Response, empty};
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1 as pb;

use crate::Flags;
use crate::logging::Logging;

/// The type of a call whose member of the same name is set if `is_set` requires it.
pub fn check_member<T: Enumeration + Copy>(
    kind: Option<T>,
    is_set: impl FnOnce(T) -> bool,
) -> Result<T, String> {
    let expecting = |name: &str| format!("Expecting '{name}' to be present");
    let kind = kind.ok_or_else(|| expecting("type"))?;
    match is_set(kind) {
        true => Ok(kind),
        false => Err(expecting(&kind.proto_name().to_lowercase())),
    }
}

/// SET_LOGGING_LEVEL.
pub fn set_logging_level(logging: &Logging, level: u32, nanoseconds: i64) -> Result<Response, HttpError> {
    let nanos =
        u64::try_from(nanoseconds).map_err(|_| HttpError::bad_request("Invalid duration: it is negative"))?;
    logging.set(level, Duration::from_nanos(nanos));
    Ok(empty(StatusCode::OK))
}

/// GET_FLAGS.
pub fn flag_list(flags: &Flags) -> Vec<pb::Flag> {
    let flag = |(name, value): &(String, String)| pb::Flag {
        name: name.clone(),
        value: Some(value.clone()),
        ..Default::default()
    };
    flags.iter().map(flag).collect()
}
