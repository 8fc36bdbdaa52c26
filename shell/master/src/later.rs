//! Endpoints whose writes are not built yet: they show what there is, and refuse to change it.

use tepui_core_master::State;
use tepui_http::{HttpError, Request, Response, json};
use tepui_proto::json::JsonWriter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Later {
    Quota,
    MaintenanceSchedule,
    MaintenanceStatus,
    MachineDown,
    MachineUp,
    Reserve,
    Unreserve,
    CreateVolumes,
    DestroyVolumes,
}

impl Later {
    fn methods(self) -> &'static str {
        match self {
            Later::Quota => "GET, POST, DELETE",
            Later::MaintenanceSchedule => "GET, POST",
            Later::MaintenanceStatus => "GET",
            Later::MachineDown
            | Later::MachineUp
            | Later::Reserve
            | Later::Unreserve
            | Later::CreateVolumes
            | Later::DestroyVolumes => "POST",
        }
    }

    pub fn answer(self, state: &State, request: &Request) -> Result<Response, HttpError> {
        request.expect_method(self.methods())?;
        if request.method != http::Method::GET {
            return Err(HttpError::not_implemented(&format!("{} {}", request.method, request.target)));
        }
        Ok(json(&request.query, self.document(state)))
    }

    /// What there is: nothing, but for the weights that the master was started with.
    fn document(self, state: &State) -> Vec<u8> {
        let mut w = JsonWriter::new();
        match self {
            Later::Quota
            | Later::MaintenanceSchedule
            | Later::MaintenanceStatus
            | Later::MachineDown
            | Later::MachineUp
            | Later::Reserve
            | Later::Unreserve
            | Later::CreateVolumes
            | Later::DestroyVolumes => w.object(|_| ()),
        }
        w.into_vec()
    }
}
