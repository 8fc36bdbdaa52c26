//! Resource names; the five standard names are cheap to copy and compare.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

/// The order of the variants is the order in which resources are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    Cpus,
    Mem,
    Disk,
    Gpus,
    Ports,
    /// Never one of the above: created by [`Name::new`] only. Boxed twice to keep the enum at two words.
    Other(OtherName),
}

/// A name that is not one of the standard names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherName(Arc<Box<str>>);

impl Name {
    pub fn new(name: &str) -> Self {
        match name {
            "cpus" => Name::Cpus,
            "mem" => Name::Mem,
            "disk" => Name::Disk,
            "gpus" => Name::Gpus,
            "ports" => Name::Ports,
            other => Name::Other(OtherName(Arc::new(other.into()))),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Name::Cpus => "cpus",
            Name::Mem => "mem",
            Name::Disk => "disk",
            Name::Gpus => "gpus",
            Name::Ports => "ports",
            Name::Other(other) => &other.0,
        }
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_small_and_canonical() {
        assert_eq!(size_of::<Name>(), 16);
        for text in ["cpus", "mem", "disk", "gpus", "ports", "bandwidth", ""] {
            assert_eq!(Name::new(text).as_str(), text);
            assert_eq!(Name::new(text), Name::from(text));
        }
        assert!(Name::Cpus < Name::Ports && Name::Ports < Name::new("a") && Name::new("a") < Name::new("b"));
    }
}
