//! The two kinds of resources that a user can tell apart: those that stay and those that may be taken back.

use core::fmt;

use tepui_resources::Resource;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Regular,
    /// Usage slack, allocation slack, or revocable without a type.
    Revocable,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Regular, Kind::Revocable];

    pub fn of(resource: &Resource) -> Kind {
        if resource.is_revocable() { Kind::Revocable } else { Kind::Regular }
    }

    pub fn other(self) -> Kind {
        match self {
            Kind::Regular => Kind::Revocable,
            Kind::Revocable => Kind::Regular,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Regular => "regular",
            Kind::Revocable => "revocable",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
