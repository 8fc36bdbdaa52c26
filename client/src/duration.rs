//! Durations as the v1 world writes them: `5secs`, `1.5hrs`, `500ms`, `2weeks`.
//!
//! The one place that parses and prints this form; flags, executor environments and query parameters use it.
//! Never here: the protobuf form (`DurationInfo`), which is a plain count of nanoseconds.

use std::fmt;
use std::time::Duration;

/// The units, largest first, with their length in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("weeks", 604_800_000_000_000),
    ("days", 86_400_000_000_000),
    ("hrs", 3_600_000_000_000),
    ("mins", 60_000_000_000),
    ("secs", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("'{0}' has no unit: write a number followed by ns, us, ms, secs, mins, hrs, days or weeks")]
    NoUnit(String),
    #[error("'{0}' has an unknown unit: use ns, us, ms, secs, mins, hrs, days or weeks")]
    UnknownUnit(String),
    #[error("'{0}' does not start with a number")]
    NotANumber(String),
    #[error("'{0}' is negative or too long")]
    OutOfRange(String),
}

/// Reads a duration such as `10secs` or `1.5mins`.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(tepui_client::duration::parse("1.5mins"), Ok(Duration::from_secs(90)));
/// ```
pub fn parse(text: &str) -> Result<Duration, ParseError> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(ParseError::NoUnit(text.to_owned()))?;
    let (number, unit) = text.split_at(split);
    let (_, nanos) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| ParseError::UnknownUnit(text.to_owned()))?;
    scaled(number.trim_end(), *nanos).map_err(|wrong| wrong(text.to_owned()))
}

fn scaled(number: &str, unit_nanos: u64) -> Result<Duration, fn(String) -> ParseError> {
    if let Ok(whole) = number.parse::<u64>() {
        let nanos =
            whole.checked_mul(unit_nanos).ok_or(ParseError::OutOfRange as fn(String) -> ParseError)?;
        return Ok(Duration::from_nanos(nanos));
    }
    let fraction: f64 = number.parse().map_err(|_| ParseError::NotANumber as fn(String) -> ParseError)?;
    let nanos = (fraction * unit_nanos as f64).round();
    if !(0.0..u64::MAX as f64).contains(&nanos) {
        return Err(ParseError::OutOfRange);
    }
    Ok(Duration::from_nanos(nanos as u64))
}

/// Prints a duration in the largest unit of which there is at least one.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(tepui_client::duration::display(Duration::from_secs(90)).to_string(), "1.5mins");
/// ```
pub fn display(duration: Duration) -> impl fmt::Display {
    Display(duration)
}

struct Display(Duration);

impl fmt::Display for Display {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (name, unit) =
            UNITS.into_iter().find(|(_, unit)| nanos >= u128::from(*unit)).unwrap_or(("ns", 1));
        write!(f, "{}{name}", nanos as f64 / unit as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let table = [
            ("5secs", 5_000_000_000),
            ("0ns", 0),
            ("1.5mins", 90_000_000_000),
            ("500ms", 500_000_000),
            ("15mins", 900_000_000_000),
            ("1weeks", 604_800_000_000_000),
            (" 2 days ", 172_800_000_000_000),
            ("0.25us", 250),
            ("1hrs", 3_600_000_000_000),
        ];
        for (text, nanos) in table {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        let table = [
            ("5", ParseError::NoUnit("5".into())),
            ("", ParseError::NoUnit("".into())),
            ("5s", ParseError::UnknownUnit("5s".into())),
            ("secs", ParseError::NotANumber("secs".into())),
            ("-1secs", ParseError::OutOfRange("-1secs".into())),
            ("99999999999weeks", ParseError::OutOfRange("99999999999weeks".into())),
        ];
        for (text, wrong) in table {
            assert_eq!(parse(text), Err(wrong), "{text}");
        }
    }

    #[test]
    fn durations_round_trip_through_text() {
        for text in [
            "5secs", "0ns", "1.5mins", "500ms", "15mins", "1weeks", "2days", "250ns", "1.5secs", "7us",
            "1hrs",
        ] {
            let duration = parse(text).expect("valid");
            assert_eq!(display(duration).to_string(), text);
        }
    }
}
