//! How far a long benchmark is, for people who wait at a terminal.

use std::io::{IsTerminal, Write, stderr};

const WIDTH_CHARS: usize = 24;

pub(super) fn show(done: usize, all: usize, what: &str) {
    print(&format!("{} {done}/{all} {what}", bar(done, all)));
}

/// Nothing is left of it.
pub(super) fn end() {
    print("");
}

fn print(text: &str) {
    if stderr().is_terminal() {
        // A closed terminal is not an error.
        let _ = write!(stderr(), "\r\x1b[K{text}");
    }
}

fn bar(done: usize, all: usize) -> String {
    let filled = WIDTH_CHARS * done / all.max(1);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(WIDTH_CHARS - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_is_proportional_to_completion() {
        for (done, all, shown) in [
            (0, 4, "[------------------------]"),
            (1, 4, "[######------------------]"),
            (4, 4, "[########################]"),
            (0, 0, "[------------------------]"),
        ] {
            assert_eq!(bar(done, all), shown);
        }
    }
}
