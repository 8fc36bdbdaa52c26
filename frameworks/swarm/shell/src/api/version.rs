//! Versions of the API that are served.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub text: &'static str,
}

/// The newest version that is served: that of the oldest engines that are supported.
pub const API_VERSION: Version = Version { major: 1, minor: 41, text: "1.41" };
/// The oldest, as engines of that version have it.
pub const API_VERSION_MIN: Version = Version { major: 1, minor: 12, text: "1.12" };
