//! Numbers as text: amounts of resources, sizes, ages and times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999: later years have more than four digits.
const TIMESTAMP_SECONDS_MAX: f64 = 253_402_300_799.0;

/// At most three decimals, without trailing zeros.
pub fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// `1 task`, `2 tasks`: for nouns that take an s.
pub fn count(how_many: u64, noun: &str) -> String {
    format!("{how_many} {noun}{}", if how_many == 1 { "" } else { "s" })
}

/// Megabytes, as v1 counts memory and disk.
pub fn megabytes(value: f64) -> String {
    scaled(value, &["M", "G", "T", "P"])
}

pub fn bytes(value: f64) -> String {
    scaled(value, &["B", "K", "M", "G", "T", "P"])
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().unwrap_or(&"");
    while value.abs() >= 1024.0 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    if value == 0.0 {
        return "0".to_string();
    }
    let digits = if value.abs() >= 100.0 { 0 } else { 1 };
    format!("{}{unit}", number(format!("{value:.digits$}").parse().unwrap_or(value)))
}

/// How long something took or takes, in its two largest units: `3m12s`, `2d4h`.
pub fn duration(seconds: f64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let total = seconds.max(0.0) as u64;
    let first = UNITS.iter().position(|(size, _)| total >= *size).unwrap_or(UNITS.len() - 1);
    let (size, unit) = UNITS[first];
    let large = format!("{}{unit}", total / size);
    match UNITS.get(first + 1) {
        Some((small, unit)) if total % size >= *small => format!("{large}{}{unit}", total % size / small),
        Some(_) | None => large,
    }
}

/// A moment in seconds since the epoch as `2026-11-15 21:48:24 UTC`; empty for the epoch itself, which v1 uses for "never".
pub fn moment(seconds: f64) -> String {
    if seconds <= 0.0 || !seconds.is_finite() {
        return String::new();
    }
    let since = Duration::from_secs(seconds.min(TIMESTAMP_SECONDS_MAX) as u64);
    let timestamp = tepui_log::timestamp(UNIX_EPOCH + since);
    format!("{} {} UTC", &timestamp[..10], &timestamp[11..19])
}

/// Seconds since the epoch.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map(|since| since.as_secs_f64()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (16.0, "16"),
            (0.30000000000000004, "0.3"),
            (-0.0, "0"),
            (100.0, "100"),
        ] {
            assert_eq!(number(value), text);
        }
        for (value, text) in
            [(0.0, "0"), (32.0, "32M"), (1024.0, "1G"), (1536.0, "1.5G"), (8.0e6, "7.6T"), (0.5, "0.5M")]
        {
            assert_eq!(megabytes(value), text);
        }
        for (value, text) in [(12.0, "12B"), (2048.0, "2K"), (1.5e6, "1.4M"), (1e20, "88818P")] {
            assert_eq!(bytes(value), text);
        }
    }

    #[test]
    fn count_of_one_is_singular() {
        assert_eq!([0, 1, 2].map(|many| count(many, "task")), ["0 tasks", "1 task", "2 tasks"]);
    }

    #[test]
    fn durations_have_two_units() {
        let table = [
            (-1.0, "0s"),
            (0.4, "0s"),
            (59.9, "59s"),
            (60.0, "1m"),
            (192.0, "3m12s"),
            (3_600.0, "1h"),
            (3_659.0, "1h"),
            (187_200.0, "2d4h"),
        ];
        for (seconds, text) in table {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn times_are_dates() {
        let table = [
            (0.0, ""),
            (f64::INFINITY, ""),
            (1.0, "1970-01-01 00:00:01 UTC"),
            (951_782_400.5, "2000-02-29 00:00:00 UTC"),
            (1_794_774_349.1, "2026-11-15 20:25:49 UTC"),
            (4_107_542_399.0, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400.0, "2100-03-01 00:00:00 UTC"),
        ];
        for (seconds, text) in table {
            assert_eq!(moment(seconds), text, "{seconds}");
        }
    }
}
