//! What makes one disk differ from another: its source, and the persistent volume on it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cmp::Ordering;

use tepui_proto::mesos::v1 as pb;

use crate::labels::Labels;

/// Two disks are equal if their sources and the ids of their volumes are: mount point and creator are not part of the
/// identity.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub source: Option<DiskSource>,
    pub persistence: Option<Persistence>,
    /// Passed through to the mount; not part of the identity.
    pub volume: Option<Box<pb::Volume>>,
}

/// Makes a disk a persistent volume.
#[derive(Clone, Debug)]
pub struct Persistence {
    pub id: Arc<str>,
    pub principal: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskSource {
    pub kind: DiskKind,
    pub vendor: Option<Arc<str>>,
    pub id: Option<Arc<str>>,
    pub metadata: Option<Labels>,
    pub profile: Option<Arc<str>>,
}

/// `None` until the agent fills in the location of the disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskKind {
    /// A folder: can be divided.
    Path { root: Option<Arc<str>> },
    /// A whole file system: all or nothing.
    Mount { root: Option<Arc<str>> },
    /// A whole device: all or nothing.
    Block,
    /// Storage that is neither yet; divisible while it has no id.
    Raw,
}

impl Disk {
    /// A plain disk with a persistent volume on it.
    pub fn persistent(id: impl Into<Arc<str>>, container_path: &str) -> Self {
        let volume = pb::Volume {
            mode: pb::volume::Mode::RW,
            container_path: container_path.into(),
            ..Default::default()
        };
        let persistence = Persistence { id: id.into(), principal: None };
        Self { source: None, persistence: Some(persistence), volume: Some(Box::new(volume)) }
    }

    /// The disk after its volume was destroyed; `None` for a disk without source, which is then plain disk space.
    pub(crate) fn without_volume(&self) -> Option<Disk> {
        let source = Some(self.source.clone()?);
        Some(Disk { source, persistence: None, volume: None })
    }

    /// Can only be allocated as a whole.
    pub(crate) fn is_indivisible(&self) -> bool {
        self.persistence.is_some() || self.source.as_ref().is_some_and(DiskSource::is_indivisible)
    }

    fn identity(&self) -> (Option<&DiskSource>, Option<&str>) {
        (self.source.as_ref(), self.persistence.as_ref().map(|persistence| &*persistence.id))
    }
}

impl DiskSource {
    pub fn new(kind: DiskKind) -> Self {
        Self { kind, vendor: None, id: None, metadata: None, profile: None }
    }

    fn is_indivisible(&self) -> bool {
        match self.kind {
            DiskKind::Path { .. } => false,
            DiskKind::Mount { .. } | DiskKind::Block => true,
            DiskKind::Raw => self.id.is_some(),
        }
    }
}

impl PartialEq for Disk {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Disk {}

impl PartialOrd for Disk {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Disk {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}
