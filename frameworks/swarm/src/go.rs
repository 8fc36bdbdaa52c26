//! Durations and truth values as Go programs read and write them: classic Swarm's options and messages have that form.

use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;
use core::time::Duration;

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// `1h2m3.5s`; errors in Go's words. Negative durations are read as errors: no option takes one.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let body = text.strip_prefix('+').unwrap_or(text);
    if body == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut nanos) = (body, 0u128);
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, next) = behind.split_at(letters);
        if number.trim_matches('.').is_empty() || number.matches('.').count() > 1 {
            return Err(invalid());
        }
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        };
        nanos += scaled(number, *scale).ok_or_else(invalid)?;
        rest = next;
    }
    u64::try_from(nanos)
        .ok()
        .filter(|nanos| i64::try_from(*nanos).is_ok())
        .map(Duration::from_nanos)
        .ok_or_else(invalid)
}

fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = &fraction[..fraction.len().min(18)];
    let parts: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.checked_mul(scale)?.checked_add(parts * scale / 10u128.pow(fraction.len() as u32))
}

/// `5s`, `1m0s`, `1.5s`, `500ms`.
pub fn duration_text(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let with_fraction = |nanos: u128, unit: u128, name: &str| {
        let digits = unit.ilog10() as usize;
        let fraction = format!("{:0digits$}", nanos % unit);
        let fraction = if digits == 0 { "" } else { fraction.trim_end_matches('0') };
        let dot = if fraction.is_empty() { "" } else { "." };
        format!("{}{dot}{fraction}{name}", nanos / unit)
    };
    match nanos {
        0 => "0s".into(),
        1..1_000 => with_fraction(nanos, 1, "ns"),
        1_000..1_000_000 => with_fraction(nanos, 1_000, "µs"),
        1_000_000..1_000_000_000 => with_fraction(nanos, 1_000_000, "ms"),
        _ => {
            let (minutes, rest) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
            let mut text = String::new();
            if minutes >= 60 {
                let _ = write!(text, "{}h", minutes / 60);
            }
            if minutes > 0 {
                let _ = write!(text, "{}m", minutes % 60);
            }
            text + &with_fraction(rest, 1_000_000_000, "s")
        }
    }
}

/// `yes` and `on` are no truth values.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, written) in [
            ("5s", "5s"),
            ("0", "0s"),
            ("30s", "30s"),
            ("60s", "1m0s"),
            ("1.5s", "1.5s"),
            (".5s", "500ms"),
            ("1500ms", "1.5s"),
            ("1h", "1h0m0s"),
            ("1h2m3.25s", "1h2m3.25s"),
            ("90m", "1h30m0s"),
            ("10us", "10µs"),
            ("7ns", "7ns"),
            ("+2s", "2s"),
        ] {
            assert_eq!(parse_duration(text).map(duration_text), Ok(written.to_string()), "{text}");
        }
        for (text, error) in [
            ("", "time: invalid duration \"\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("s", "time: invalid duration \"s\""),
            ("-5s", "time: invalid duration \"-5s\""),
            ("1..5s", "time: invalid duration \"1..5s\""),
            ("9999999999h", "time: invalid duration \"9999999999h\""),
        ] {
            assert_eq!(parse_duration(text), Err(error.to_string()), "{text}");
        }
    }
}
