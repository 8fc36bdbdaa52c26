//! Durations as the v1 flags, variables and messages write them: `10secs`, `1.5mins`, `1weeks`.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

const UNITS: [(&str, u64); 8] = [
    ("weeks", 7 * 24 * 3600 * 1_000_000_000),
    ("days", 24 * 3600 * 1_000_000_000),
    ("hrs", 3600 * 1_000_000_000),
    ("mins", 60 * 1_000_000_000),
    ("secs", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// In the largest unit that gives at least one.
pub fn duration_text(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let (name, unit) = UNITS.into_iter().find(|(_, unit)| nanos >= u128::from(*unit)).unwrap_or(("ns", 1));
    format!("{}{name}", nanos as f64 / unit as f64)
}

/// A number and its unit without a space; `None` for anything else and for negative numbers.
pub fn duration_from_text(text: &str) -> Option<Duration> {
    let (name, unit) = UNITS.into_iter().find(|(name, _)| text.ends_with(name))?;
    let number: f64 = text.strip_suffix(name)?.parse().ok()?;
    let nanos = number * unit as f64;
    (0.0..u64::MAX as f64).contains(&nanos).then(|| Duration::from_nanos(nanos as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_largest_whole_unit() {
        for (millis, text) in [
            (0, "0ns"),
            (500, "500ms"),
            (2_000, "2secs"),
            (60_000, "1mins"),
            (90_000, "1.5mins"),
            (900_000, "15mins"),
            (7 * 24 * 3_600_000, "1weeks"),
        ] {
            assert_eq!(duration_text(Duration::from_millis(millis)), text);
            assert_eq!(duration_from_text(text), Some(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for text in ["", "5", "secs", "5 secs", "-1secs", "5s", "infsecs", "NaNsecs", "1e30weeks", "5secsx"] {
            assert_eq!(duration_from_text(text), None, "{text}");
        }
        assert_eq!(duration_from_text("0.5us"), Some(Duration::from_nanos(500)));
    }
}
