//! `/profiler/start` and `/profiler/stop`: refused in the words of a v1 that was built without its profiler.

use crate::HttpError;
use crate::respond::Response;

/// There is none; profile with the tools of the system.
pub fn profiler() -> Result<Response, HttpError> {
    Err(HttpError::bad_request(
        "Perftools is disabled. To enable perftools, configure libprocess with --enable-perftools.\n",
    ))
}
