//! Resources in words, as v1 writes them in logs and messages:
//! `cpus(allocated: dev):15.5; disk(reservations: [(DYNAMIC,web,ops)])[v1:data]:64`.

use core::fmt;

use crate::disk::{Disk, DiskKind, DiskSource};
use crate::labels::Labels;
use crate::reservation::{Reservation, ReservationKind};
use crate::resource::{Resource, Revocable, Value};
use crate::resources::Resources;

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("{}");
        }
        for (i, resource) in self.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{resource}")?;
            match self.copies(resource) {
                copies if resource.is_shared() => write!(f, "<{copies}>")?,
                _ => (),
            }
        }
        Ok(())
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        if let Some(role) = self.allocation() {
            write!(f, "(allocated: {role})")?;
        }
        if self.is_reserved() {
            f.write_str("(reservations: [")?;
            for (i, reservation) in self.reservations().iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(f, "{comma}{reservation}")?;
            }
            f.write_str("])")?;
        }
        if let Some(disk) = self.disk() {
            write!(f, "[{disk}]")?;
        }
        f.write_str(match self.revocable() {
            Revocable::No => "",
            Revocable::Plain => "{REV}",
            Revocable::UsageSlack => "{REV: USAGE_SLACK}",
            Revocable::AllocationSlack => "{REV: ALLOCATION_SLACK}",
        })?;
        if self.is_shared() {
            f.write_str("<SHARED>")?;
        }
        write!(f, ":{}", self.value())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Scalar(amount) => amount.fmt(f),
            Value::Ranges(ranges) => ranges.fmt(f),
            Value::Set(set) => set.fmt(f),
        }
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ReservationKind::Static => "STATIC",
            ReservationKind::Dynamic => "DYNAMIC",
        };
        write!(f, "({kind},{}", self.role)?;
        if let Some(principal) = &self.principal {
            write!(f, ",{principal}")?;
        }
        if let Some(labels) = &self.labels {
            write!(f, ",{labels}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (key, value)) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{key}")?;
            if let Some(value) = value {
                write!(f, ": {value}")?;
            }
        }
        f.write_str("}")
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source}")?;
        }
        if let Some(persistence) = &self.persistence {
            let comma = if self.source.is_some() { "," } else { "" };
            write!(f, "{comma}{}", persistence.id)?;
        }
        if let Some(volume) = &self.volume {
            write!(f, ":{}", volume.container_path)?;
        }
        Ok(())
    }
}

impl fmt::Display for DiskSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, root) = match &self.kind {
            DiskKind::Path { root } => ("PATH", root.as_ref()),
            DiskKind::Mount { root } => ("MOUNT", root.as_ref()),
            DiskKind::Block => ("BLOCK", None),
            DiskKind::Raw => ("RAW", None),
        };
        f.write_str(kind)?;
        if self.vendor.is_some() || self.id.is_some() || self.profile.is_some() {
            let part = |part: &Option<alloc::sync::Arc<str>>| part.clone().unwrap_or_default();
            write!(f, "({},{},{})", part(&self.vendor), part(&self.id), part(&self.profile))?;
        }
        match root {
            Some(root) => write!(f, ":{root}"),
            None => Ok(()),
        }
    }
}
