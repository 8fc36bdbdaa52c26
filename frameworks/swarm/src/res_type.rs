//! Which kinds of resources a container may use, from its constraint with the key `res-type`.
//!
//! One function maps every form of the constraint; the table test below is its specification.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tepui_placement::Kind;

use crate::expression::{Expression, ExpressionError};

/// Key of the constraint, of the label of engines and of the label of containers.
pub const RES_TYPE: &str = "res-type";

/// What the user allows, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Only(Kind),
    /// This kind wherever it is, else the other.
    Prefer(Kind),
    /// The best node decides; regular before revocable on that node.
    Any,
}

/// Why a `res-type` constraint is rejected before the container is queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResTypeError {
    Several(Vec<String>),
    NoKind(String),
    NotAPattern(String),
    RevocableDisabled,
}

impl Choice {
    /// From all constraints of a container. Without one for `res-type` only regular resources are used.
    pub fn from_constraints(constraints: &[Expression]) -> Result<Choice, ResTypeError> {
        let own: Vec<&Expression> =
            constraints.iter().filter(|expression| expression.key == RES_TYPE).collect();
        match own[..] {
            [] => Ok(Choice::Only(Kind::Regular)),
            [expression] => Choice::of(expression),
            _ => Err(ResTypeError::Several(own.iter().map(|expression| expression.written()).collect())),
        }
    }

    fn of(expression: &Expression) -> Result<Choice, ResTypeError> {
        if !expression.is_pattern() {
            return Err(ResTypeError::NotAPattern(expression.written()));
        }
        let holds = |kind: Kind| expression.holds([kind.as_str()]);
        match (holds(Kind::Regular), holds(Kind::Revocable), expression.soft) {
            (true, true, _) => Ok(Choice::Any),
            (true, false, false) => Ok(Choice::Only(Kind::Regular)),
            (false, true, false) => Ok(Choice::Only(Kind::Revocable)),
            (true, false, true) => Ok(Choice::Prefer(Kind::Regular)),
            (false, true, true) => Ok(Choice::Prefer(Kind::Revocable)),
            (false, false, _) => Err(ResTypeError::NoKind(expression.written())),
        }
    }

    /// The same for a framework that is not offered revocable resources.
    pub fn without_revocable(self) -> Result<Choice, ResTypeError> {
        match self {
            Choice::Only(Kind::Revocable) => Err(ResTypeError::RevocableDisabled),
            Choice::Only(Kind::Regular) | Choice::Prefer(_) | Choice::Any => Ok(Choice::Only(Kind::Regular)),
        }
    }

    /// The kinds that a container may get.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Choice::Only(Kind::Regular) => &[Kind::Regular],
            Choice::Only(Kind::Revocable) => &[Kind::Revocable],
            Choice::Prefer(Kind::Revocable) => &[Kind::Revocable, Kind::Regular],
            Choice::Prefer(Kind::Regular) | Choice::Any => &[Kind::Regular, Kind::Revocable],
        }
    }
}

impl fmt::Display for ResTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResTypeError::Several(all) => {
                let (count, all) = (all.len(), all.join(", "));
                write!(f, "only one constraint with key \"{RES_TYPE}\" is allowed, got {count}: {all}")
            }
            ResTypeError::NoKind(written) => {
                write!(f, "constraint {written} does not allow any resource type (regular, revocable)")
            }
            ResTypeError::NotAPattern(written) => write!(f, "constraint {written} is not a valid pattern"),
            ResTypeError::RevocableDisabled => {
                f.write_str("revocable resources are not enabled (cluster option mesos.enablerevocable)")
            }
        }
    }
}

/// The text for an expression that does not parse, with the name of its filter.
pub(crate) fn malformed(filter: &str, error: &ExpressionError) -> String {
    alloc::format!("error from {filter} filter: {error}")
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    fn outcome(written: &[&str]) -> String {
        let parsed: Result<Vec<Expression>, _> =
            written.iter().map(|text| Expression::parse(&format!("res-type{text}"))).collect();
        match parsed {
            Err(error) => format!("E0 {}", malformed("constraint", &error)),
            Ok(constraints) => match Choice::from_constraints(&constraints) {
                Ok(choice) => format!("{choice:?}"),
                Err(error) => format!("{} {error}", number(&error)),
            },
        }
    }

    fn number(error: &ResTypeError) -> &'static str {
        match error {
            ResTypeError::Several(_) => "E1",
            ResTypeError::NoKind(_) => "E2",
            ResTypeError::NotAPattern(_) => "E3",
            ResTypeError::RevocableDisabled => "E4",
        }
    }

    #[test]
    fn every_form_is_mapped_to_one_choice() {
        for (written, expected) in [
            ("==regular", "Only(Regular)"),
            ("==revocable", "Only(Revocable)"),
            ("==~regular", "Prefer(Regular)"),
            ("==~revocable", "Prefer(Revocable)"),
            ("==*", "Any"),
            ("==re*", "Any"),
            ("==r*", "Any"),
            ("!=revocable", "Only(Regular)"),
            ("!=regular", "Only(Revocable)"),
            ("==revoca*", "Only(Revocable)"),
            ("==*cable", "Only(Revocable)"),
            ("==*lar", "Only(Regular)"),
            ("==re.*ble", "Only(Revocable)"),
            ("==/r/", "Any"),
            ("==/e/", "Any"),
            ("==~revoca*", "Prefer(Revocable)"),
            ("!=~revocable", "Prefer(Regular)"),
            ("!=~regular", "Prefer(Revocable)"),
            ("==~*", "Any"),
            ("==~re*", "Any"),
            ("!=gold", "Any"),
            ("!=any", "Any"),
            ("!=~gold", "Any"),
            ("==/^reg/", "Only(Regular)"),
            ("==/(?i)REV/", "Only(Revocable)"),
            ("!=/voc/", "Only(Regular)"),
            ("==/^re(gular|vocable)$/", "Any"),
            ("==regular|revocable", "Any"),
        ] {
            assert_eq!(outcome(&[written]), expected, "{written}");
        }
        assert_eq!(outcome(&[]), "Only(Regular)");
    }

    #[test]
    fn res_type_constraints_without_a_match_are_rejected() {
        let no_kind = |text: &str| {
            format!("E2 constraint res-type{text} does not allow any resource type (regular, revocable)")
        };
        for text in ["!=re*", "!=*", "==gold", "==any", "==Regular", "!=~re*", "==~gold", "==regular2"] {
            assert_eq!(outcome(&[text]), no_kind(text), "{text}");
        }
        for text in ["==/(/", "==/", "==[", "!=(", "==*("] {
            assert_eq!(
                outcome(&[text]),
                format!("E3 constraint res-type{text} is not a valid pattern"),
                "{text}"
            );
        }
        for (text, error) in [
            ("=regular", "One of operator ==, != is expected"),
            ("", "One of operator ==, != is expected"),
            ("==", "Value '' is invalid"),
            ("==~", "Value '~' is invalid"),
            ("==a,b", "Value 'a,b' is invalid"),
        ] {
            assert_eq!(outcome(&[text]), format!("E0 error from constraint filter: {error}"), "{text}");
        }
    }

    #[test]
    fn multiple_res_type_constraints_are_rejected() {
        assert_eq!(
            outcome(&["==regular", "==~revocable"]),
            "E1 only one constraint with key \"res-type\" is allowed, got 2: res-type==regular, res-type==~revocable"
        );
        assert_eq!(
            outcome(&["==*", "==*", "==*"]),
            "E1 only one constraint with key \"res-type\" is allowed, got 3: res-type==*, res-type==*, res-type==*"
        );
    }

    #[test]
    fn disabled_revocable_resources_map_choices_to_regular() {
        let regular = Ok(Choice::Only(Kind::Regular));
        for (choice, expected) in [
            (Choice::Only(Kind::Regular), regular.clone()),
            (Choice::Prefer(Kind::Regular), regular.clone()),
            (Choice::Prefer(Kind::Revocable), regular.clone()),
            (Choice::Any, regular),
            (Choice::Only(Kind::Revocable), Err(ResTypeError::RevocableDisabled)),
        ] {
            assert_eq!(choice.without_revocable(), expected, "{choice:?}");
        }
        assert_eq!(
            ResTypeError::RevocableDisabled.to_string(),
            "revocable resources are not enabled (cluster option mesos.enablerevocable)"
        );
    }
}
