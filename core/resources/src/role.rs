//! Roles: `*`, or a path such as `eng/web` whose parents are roles too.
//!
//! [`check_role`] is the rule of v1; everything else here takes roles as they are.

use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Role(Arc<str>);

/// Why a string cannot be a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleError {
    Empty,
    StartsWithSlash,
    EndsWithSlash,
    DoubleSlash,
    Dot,
    DotDot,
    Star,
    StartsWithDash,
    Forbidden(char),
}

/// The rule for role names.
pub fn check_role(role: &str) -> Result<(), RoleError> {
    if role == "*" {
        return Ok(());
    }
    if role.is_empty() {
        return Err(RoleError::Empty);
    }
    if role.starts_with('/') {
        return Err(RoleError::StartsWithSlash);
    }
    if role.ends_with('/') {
        return Err(RoleError::EndsWithSlash);
    }
    role.split('/').try_for_each(check_component)
}

fn check_component(component: &str) -> Result<(), RoleError> {
    match component {
        "" => return Err(RoleError::DoubleSlash),
        "." => return Err(RoleError::Dot),
        ".." => return Err(RoleError::DotDot),
        "*" => return Err(RoleError::Star),
        _ if component.starts_with('-') => return Err(RoleError::StartsWithDash),
        _ => (),
    }
    match component.chars().find(|c| matches!(c, '\t'..='\r' | ' ' | '\x7f')) {
        Some(c) => Err(RoleError::Forbidden(c)),
        None => Ok(()),
    }
}

impl Role {
    /// Does not validate the name; `check_role` validates names sent by peers.
    pub fn new(role: impl Into<Arc<str>>) -> Self {
        Self(role.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are the very same text in memory. Quick; if not, they may still be equal.
    pub fn is_same(&self, other: &Role) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether this is `ancestor/…`. `*` has no subroles.
    pub fn is_strict_subrole_of(&self, ancestor: &Role) -> bool {
        self.0.strip_prefix(&*ancestor.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// `eng/web/a` gives `eng/web`, then `eng`.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> + '_ {
        let mut path = self.as_str();
        core::iter::from_fn(move || {
            path = &path[..path.rfind('/')?];
            Some(path)
        })
    }

    pub fn is_nested(&self) -> bool {
        self.0.contains('/')
    }
}

impl Ord for Role {
    fn cmp(&self, other: &Self) -> Ordering {
        // Roles are handed on rather than made anew: mostly this is all that is compared.
        if self.is_same(other) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Role {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<&str> for Role {
    fn from(role: &str) -> Self {
        Self::new(role)
    }
}

/// Allows lookups by `&str` in maps keyed by `Role`.
impl core::borrow::Borrow<str> for Role {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RoleError::Empty => f.write_str("Empty role name is invalid"),
            RoleError::StartsWithSlash => f.write_str("a role cannot start with a slash"),
            RoleError::EndsWithSlash => f.write_str("a role cannot end with a slash"),
            RoleError::DoubleSlash => f.write_str("a role cannot contain two adjacent slashes"),
            RoleError::Dot => f.write_str("a role cannot contain '.' as a component"),
            RoleError::DotDot => f.write_str("a role cannot contain '..' as a component"),
            RoleError::Star => f.write_str("a role cannot contain '*' as a component"),
            RoleError::StartsWithDash => f.write_str("a role component cannot start with '-'"),
            RoleError::Forbidden(c) => write!(f, "a role cannot contain the character {c:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn role_names_are_validated() {
        for good in ["*", "a", "eng/web", "a.b", "a-b", "..a", "ü", "a*"] {
            assert_eq!(check_role(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", RoleError::Empty),
            ("/a", RoleError::StartsWithSlash),
            ("a/", RoleError::EndsWithSlash),
            ("a//b", RoleError::DoubleSlash),
            ("a/.", RoleError::Dot),
            ("../a", RoleError::DotDot),
            ("a/*", RoleError::Star),
            ("-a", RoleError::StartsWithDash),
            ("a/-b", RoleError::StartsWithDash),
            ("a b", RoleError::Forbidden(' ')),
            ("a\x0bb", RoleError::Forbidden('\x0b')),
            ("a\x7f", RoleError::Forbidden('\x7f')),
        ] {
            assert_eq!(check_role(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn ancestors_of_a_role_are_listed() {
        let role = Role::from("eng/web/a");
        assert_eq!(role.ancestors().collect::<Vec<_>>(), ["eng/web", "eng"]);
        assert!(role.is_strict_subrole_of(&"eng".into()) && role.is_nested());
        for other in ["eng/web/a", "en", "*", "eng/we"] {
            assert!(!role.is_strict_subrole_of(&other.into()), "{other}");
        }
    }
}
