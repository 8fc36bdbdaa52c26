//! Ids as newtypes: cheap to clone, ordered, never mixed up.
//!
//! Clients choose task, executor and framework ids; [`check_id`] is the rule they must follow, because ids become
//! file names.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use tepui_proto::mesos::v1 as pb;

/// The longest id, in bytes: ids become file names.
pub const ID_BYTES_MAX: usize = 255;

/// Why a string cannot be an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdError {
    Empty,
    TooLong,
    Dots,
    Forbidden(char),
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdError::Empty => write!(f, "ID must not be empty"),
            IdError::TooLong => write!(f, "ID must not be longer than {ID_BYTES_MAX} bytes"),
            IdError::Dots => write!(f, "'.' and '..' are disallowed as IDs"),
            IdError::Forbidden(c) => write!(f, "ID contains the invalid character {c:?}"),
        }
    }
}

/// The rule for task, executor, agent, framework and persistence ids.
pub fn check_id(id: &str) -> Result<(), IdError> {
    if id.is_empty() {
        return Err(IdError::Empty);
    }
    if id.len() > ID_BYTES_MAX {
        return Err(IdError::TooLong);
    }
    if id == "." || id == ".." {
        return Err(IdError::Dots);
    }
    match id.chars().find(|c| c.is_ascii_control() || matches!(c, '/' | '\\')) {
        Some(c) => Err(IdError::Forbidden(c)),
        None => Ok(()),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $proto:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            pub fn to_proto(&self) -> pb::$proto {
                pb::$proto { value: String::from(&*self.0), ..Default::default() }
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<&pb::$proto> for $name {
            fn from(id: &pb::$proto) -> Self {
                Self(Arc::from(id.value.as_str()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// `<master id>-NNNN` if assigned by a master; any valid id if chosen by the framework.
    FrameworkId,
    FrameworkID
);
id!(
    /// `<master id>-S<n>`.
    AgentId,
    AgentID
);
id!(
    /// `<master id>-O<n>`; offers and inverse offers share one counter.
    OfferId,
    OfferID
);
id!(
    /// Chosen by the framework; unique among its live and unreachable tasks.
    TaskId,
    TaskID
);
id!(
    /// Chosen by the framework, or the task's id for an executor made for a command task.
    ExecutorId,
    ExecutorID
);

/// One HTTP exchange or stream. Assigned by the shell, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// A container, possibly nested in another. Written `root.child.grandchild`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId {
    parent: Option<Arc<ContainerId>>,
    value: Arc<str>,
}

impl ContainerId {
    pub fn root(value: impl Into<Arc<str>>) -> Self {
        Self { parent: None, value: value.into() }
    }

    pub fn child(&self, value: impl Into<Arc<str>>) -> Self {
        Self { parent: Some(Arc::new(self.clone())), value: value.into() }
    }

    pub fn value(&self) -> &str {
        &self.value
    }

    pub fn parent(&self) -> Option<&ContainerId> {
        self.parent.as_deref()
    }

    /// The outermost container this one lives in; itself if it is not nested.
    pub fn top(&self) -> &ContainerId {
        self.parent().map_or(self, ContainerId::top)
    }

    pub fn to_proto(&self) -> pb::ContainerID {
        pb::ContainerID {
            value: String::from(&*self.value),
            parent: self.parent().map(ContainerId::to_proto).into(),
            ..Default::default()
        }
    }
}

impl From<&pb::ContainerID> for ContainerId {
    fn from(id: &pb::ContainerID) -> Self {
        Self {
            parent: id.parent.as_option().map(|parent| Arc::new(ContainerId::from(parent))),
            value: Arc::from(id.value.as_str()),
        }
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = &self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(&self.value)
    }
}

impl fmt::Debug for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn ids_are_validated() {
        for good in ["a", "web.1", "a b", "ü", "...", &"x".repeat(255)] {
            assert_eq!(check_id(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", IdError::Empty),
            (".", IdError::Dots),
            ("..", IdError::Dots),
            ("a/b", IdError::Forbidden('/')),
            ("a\\b", IdError::Forbidden('\\')),
            ("a\nb", IdError::Forbidden('\n')),
            (&"x".repeat(256), IdError::TooLong),
        ] {
            assert_eq!(check_id(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn nested_container_ids_round_trip() {
        let id = ContainerId::root("a").child("b").child("c");
        assert_eq!(id.to_string(), "a.b.c");
        assert_eq!(id.top(), &ContainerId::root("a"));
        assert_eq!(ContainerId::from(&id.to_proto()), id);
    }
}
