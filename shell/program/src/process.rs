//! The process of a program: what its endpoints and documents show of it, and its audit log.

use std::path::PathBuf;
use std::sync::Arc;

use tepui_authz::{Action, Authorizer};
use tepui_http::{Audit, Ended, Request};
use tepui_log::AuditLog;
use tepui_proto::json::JsonWriter;
use tepui_runtime::Handle;
use tepui_store::Room;
use tepui_types::DiskRoom;
use tokio::sync::mpsc;

use crate::fault::ProcessFault;
use crate::files::Attached;
use crate::logging::Logging;
use crate::options::ProcessOptions;
use crate::{Flags, classic};

/// A cheap clone.
#[derive(Clone, Debug)]
pub struct Process {
    pub info: Arc<ServerInfo>,
    pub logging: Logging,
    pub audit: Audit,
    /// The log, which operators may read.
    pub log: Option<Attached>,
    audit_log: Option<AuditLog>,
}

/// What documents contain besides the state.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    pub flags: Flags,
    pub external_log_file: Option<PathBuf>,
    pub own_log_file: Option<PathBuf>,
}

impl Process {
    /// Opens the audit log of `program`. The log is shown as `log_path`.
    pub fn open(
        program: &'static str,
        log_path: &str,
        options: &ProcessOptions,
    ) -> Result<Self, ProcessFault> {
        let audit_log = options.audit_log.as_ref().map(|path| {
            AuditLog::start(path).map_err(|err| ProcessFault::AuditLog { path: path.clone(), err })
        });
        let audit_log = audit_log.transpose()?;
        let sink = audit_log.clone().map(|log| Arc::new(move |line: &str| log.push(line)) as _);
        let log = options.external_log_file.as_ref().or(options.own_log_file.as_ref());
        Ok(Self {
            info: Arc::new(ServerInfo {
                flags: options.flags.clone(),
                external_log_file: options.external_log_file.clone(),
                own_log_file: options.own_log_file.clone(),
            }),
            logging: options.logging.clone(),
            audit: Audit::new(program, sink),
            log: log.map(|file| Attached { path: log_path.to_owned(), real: file.display().to_string() }),
            audit_log,
        })
    }

    /// What documents contain besides the state, as the sender of the request may see it.
    pub fn info_for(&self, authorizer: &Authorizer, request: &Request) -> Arc<ServerInfo> {
        match authorizer.allows(request.subject(), Action::ViewFlags, None) {
            true => self.info.clone(),
            false => Arc::new(ServerInfo { flags: Vec::new(), ..(*self.info).clone() }),
        }
    }

    /// Waits until all entries of the audit log are written.
    pub fn flush(&self) {
        if let Some(log) = &self.audit_log {
            log.flush();
        }
    }
}

impl ServerInfo {
    /// `log_dir`, `external_log_file` and `flags` of a document.
    pub fn write(&self, w: &mut JsonWriter) {
        let text = |path: &PathBuf| path.display().to_string();
        w.optional_field("log_dir", classic::log_dir(self.own_log_file.as_deref()).as_ref());
        w.optional_field("external_log_file", self.external_log_file.as_ref().map(text).as_ref());
        classic::flags_member(w, &self.flags);
    }
}

/// Sends an input for every exchange that its peer ended. Ends with the machine.
pub async fn pass_ended<K, I>(
    mut ended: mpsc::UnboundedReceiver<Ended<K>>,
    handle: Handle<I>,
    input: impl Fn(Ended<K>) -> I,
) {
    while let Some(ended) = ended.recv().await {
        if handle.send(input(ended)).await.is_err() {
            return;
        }
    }
}

/// The space for records, as machines take it.
pub fn disk_room(room: Room) -> DiskRoom {
    DiskRoom { is_short: room.is_short, available_bytes: room.available_bytes }
}
