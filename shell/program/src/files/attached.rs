//! Names that peers may use, and what they stand for.

/// One name of one directory or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The name.
    pub path: String,
    /// Where it is.
    pub real: String,
}

/// The longest name that a path begins with, and the rest of the path. Of the same names the newest, which is the last.
pub(super) fn find<'a, 'p>(attached: &'a [Attached], path: &'p str) -> Option<(&'a Attached, &'p str)> {
    let candidates = attached.iter().filter_map(|one| Some((one, rest_of(path, &one.path)?)));
    candidates.max_by_key(|(one, _)| one.path.len())
}

/// What follows a name in a path, at a boundary.
fn rest_of<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}
