//! The text of a container's status, as engines write it: read once, written again with the time that has passed since.
//!
//! An engine's list has no times of start and end, only `Up 5 minutes`; a list that is still valid is not asked for again just
//! because time passes. The error is less than the unit that is shown.

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    before: String,
    /// When the list was made. None: the text has no time in it.
    seconds: Option<u64>,
    after: String,
}

impl Status {
    pub fn parse(text: &str) -> Status {
        let plain = || Status { before: text.to_owned(), seconds: None, after: String::new() };
        let begin = match text {
            _ if text.starts_with("Up ") => 3,
            _ if text.starts_with("Exited (") || text.starts_with("Restarting (") => match text.find(") ") {
                Some(at) => at + 2,
                None => return plain(),
            },
            _ => return plain(),
        };
        let (before, rest) = text.split_at(begin);
        let end = rest.find(" ago").or_else(|| rest.find(" (")).unwrap_or(rest.len());
        let (time, after) = rest.split_at(end);
        match parse_time(time) {
            Some(seconds) => {
                Status { before: before.to_owned(), seconds: Some(seconds), after: after.to_owned() }
            }
            None => plain(),
        }
    }

    /// `passed`: seconds since the list was made.
    pub fn text(&self, passed: u64) -> String {
        match self.seconds {
            Some(seconds) => {
                format!("{}{}{}", self.before, time_text(seconds.saturating_add(passed)), self.after)
            }
            None => self.before.clone(),
        }
    }

    /// Of a container that has exited.
    pub fn exit_code(&self) -> Option<i64> {
        let code = self.before.strip_prefix("Exited (")?;
        code.split(')').next()?.parse().ok()
    }

    /// `starting`, `healthy`, `unhealthy` or `none`.
    pub fn health(&self) -> &'static str {
        match self.after.trim() {
            "(healthy)" => "healthy",
            "(unhealthy)" => "unhealthy",
            "(health: starting)" => "starting",
            _ => "none",
        }
    }
}

fn parse_time(text: &str) -> Option<u64> {
    match text {
        "Less than a second" => return Some(0),
        "About a minute" => return Some(MINUTE),
        "About an hour" => return Some(HOUR),
        _ => (),
    }
    let (number, unit) = text.split_once(' ')?;
    let seconds = match unit {
        "second" | "seconds" => 1,
        "minutes" => MINUTE,
        "hours" => HOUR,
        "days" => DAY,
        "weeks" => 7 * DAY,
        "months" => 30 * DAY,
        "years" => 365 * DAY,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds)
}

/// With the limits of the units that engines have.
fn time_text(seconds: u64) -> String {
    let hours = seconds.saturating_add(HOUR / 2) / HOUR;
    match seconds {
        0 => "Less than a second".to_owned(),
        1 => "1 second".to_owned(),
        2..MINUTE => format!("{seconds} seconds"),
        _ if seconds / MINUTE == 1 => "About a minute".to_owned(),
        _ if seconds < HOUR => format!("{} minutes", seconds / MINUTE),
        _ => match hours {
            0 | 1 => "About an hour".to_owned(),
            2..48 => format!("{hours} hours"),
            _ if hours < 24 * 7 * 2 => format!("{} days", hours / 24),
            _ if hours < 24 * 30 * 2 => format!("{} weeks", hours / 24 / 7),
            _ if hours < 24 * 365 * 2 => format!("{} months", hours / 24 / 30),
            _ => format!("{} years", seconds / DAY / 365),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_durations_advance_with_time() {
        for (text, passed, expected) in [
            ("Up Less than a second", 0, "Up Less than a second"),
            ("Up Less than a second", 5, "Up 5 seconds"),
            ("Up 1 second", 0, "Up 1 second"),
            ("Up 59 seconds", 1, "Up About a minute"),
            ("Up 59 minutes", 60, "Up About an hour"),
            ("Up 5 minutes (healthy)", 60, "Up 6 minutes (healthy)"),
            ("Up 5 minutes (health: starting)", 0, "Up 5 minutes (health: starting)"),
            ("Up 2 hours (Paused)", 3600, "Up 3 hours (Paused)"),
            ("Exited (137) 3 seconds ago", 4, "Exited (137) 7 seconds ago"),
            ("Exited (0) 47 hours ago", 3600, "Exited (0) 2 days ago"),
            ("Exited (0) 13 days ago", 86400, "Exited (0) 2 weeks ago"),
            ("Exited (0) 3 months ago", 0, "Exited (0) 3 months ago"),
            ("Exited (0) 3 years ago", 0, "Exited (0) 3 years ago"),
            ("Restarting (1) 9 seconds ago", 1, "Restarting (1) 10 seconds ago"),
            ("Created", 100, "Created"),
            ("Dead", 100, "Dead"),
            ("Removal In Progress", 100, "Removal In Progress"),
            ("Exited (", 100, "Exited ("),
            ("Up a while", 100, "Up a while"),
            ("Up 99999999999999999999 years", 1, "Up 99999999999999999999 years"),
            ("Up 18446744073709551615 seconds", 1, "Up 584942417355 years"),
            ("", 1, ""),
        ] {
            assert_eq!(Status::parse(text).text(passed), expected, "{text}");
        }
    }

    #[test]
    fn exit_codes_and_health_are_read() {
        for (text, code, health) in [
            ("Exited (137) 3 seconds ago", Some(137), "none"),
            ("Exited (0) Less than a second ago", Some(0), "none"),
            ("Up 3 seconds", None, "none"),
            ("Up 3 seconds (healthy)", None, "healthy"),
            ("Up 3 seconds (unhealthy)", None, "unhealthy"),
            ("Up 3 seconds (health: starting)", None, "starting"),
            ("Restarting (1) 9 seconds ago", None, "none"),
            ("Created", None, "none"),
        ] {
            let status = Status::parse(text);
            assert_eq!((status.exit_code(), status.health()), (code, health), "{text}");
        }
    }
}
