//! Versions of the API: those that are served, and those that an engine accepts.

use http::Uri;
use http::uri::PathAndQuery;

/// Major and minor number.
pub type Number = (u32, u32);

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

/// From this version on engines prune only anonymous volumes, unless all are asked for.
pub const PRUNES_ANONYMOUS_VOLUMES: Number = (1, 42);

impl Version {
    pub const fn number(self) -> Number {
        (self.major, self.minor)
    }
}

/// `1.41`
pub fn parse(text: &str) -> Option<Number> {
    let (major, minor) = text.split_once('.')?;
    let number = |text: &str| -> Option<u32> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    };
    Some((number(major)?, number(minor)?))
}

/// The version that a path begins with, and the path behind it.
pub fn split(path: &str) -> Option<(Number, &str)> {
    let end = path.get(1..)?.find('/')? + 1;
    let (first, rest) = path.split_at(end);
    Some((parse(first.strip_prefix("/v")?)?, rest))
}

/// A request whose path begins with a version that an engine no longer accepts, in the oldest one that it does.
pub fn raise(uri: &Uri, oldest: Number) -> Option<Uri> {
    let path = uri.path_and_query()?.as_str();
    let (_, rest) = split(path).filter(|(version, _)| *version < oldest)?;
    let raised: PathAndQuery = format!("/v{}.{}{rest}", oldest.0, oldest.1).parse().ok()?;
    Some(Uri::from(raised))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_an_engine_rejects_are_raised() {
        for (path, oldest, expected) in [
            ("/v1.41/containers/json?all=1", (1, 44), Some("/v1.44/containers/json?all=1")),
            ("/v1.24/_ping", (1, 44), Some("/v1.44/_ping")),
            ("/v1.41/images/a/b:c/json", (1, 41), None),
            ("/v1.45/info", (1, 44), None),
            ("/info", (1, 44), None),
            ("/volumes/v1.41/x", (1, 44), None),
            ("/v1.x/info", (1, 44), None),
        ] {
            let raised = raise(&path.parse().expect("a path"), oldest);
            assert_eq!(raised.map(|uri| uri.to_string()).as_deref(), expected, "{path}");
        }
    }
}
