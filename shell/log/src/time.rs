//! Timestamps: UTC with microseconds, always of the same width, so that lines can be sorted and compared as text.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The width of a timestamp in bytes.
pub(crate) const TIMESTAMP_BYTES: usize = "2026-01-01T00:00:00.000000Z".len();

const DAY_SECONDS: u64 = 24 * 3600;
/// The Gregorian calendar repeats after so many days.
const ERA_DAYS: u64 = 146_097;
/// Days from 0000-03-01, where eras begin, to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;

/// `at` as `2026-01-01T00:00:00.000000Z`.
pub fn timestamp(at: SystemTime) -> String {
    let mut text = String::with_capacity(TIMESTAMP_BYTES);
    write_timestamp(at, &mut text);
    text
}

/// Appends `at`; times before 1970 appear as 1970.
pub(crate) fn write_timestamp(at: SystemTime, into: &mut String) {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / DAY_SECONDS, since.as_secs() % DAY_SECONDS);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let micros = since.subsec_micros();
    // Writing to a string cannot fail.
    let _ = write!(into, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
}

/// Years start in March here: the leap day is the last one, and the lengths of months are linear.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + EPOCH_DAYS;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let leap_days = day_of_era / 1460 + day_of_era / 146_096 - day_of_era / 36_524;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn timestamps_are_utc_and_of_one_width() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (951_868_800, "2000-03-01T00:00:00.000000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        ] {
            let text = timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!((text.as_str(), text.len()), (expected, TIMESTAMP_BYTES));
        }
        assert_eq!(timestamp(UNIX_EPOCH + Duration::new(1, 42_000)), "1970-01-01T00:00:01.000042Z");
    }
}
