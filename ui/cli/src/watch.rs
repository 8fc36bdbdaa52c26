//! `--watch`: redraws the output every second until Ctrl-C.
//!
//! An unreachable master is shown in the output and retried.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use anyhow::Result;
use terminal_size::{Height, Width, terminal_size};
use tokio::time::{MissedTickBehavior, interval};

use crate::command::signal;
use crate::output;
use crate::table::cut;

const PERIOD: Duration = Duration::from_secs(1);

/// Home without erasing, to avoid flicker; each line erases its rest.
const HOME: &str = "\x1b[H";
const ERASE_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";
const ERASE_ALL: &str = "\x1b[2J";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// Draws until a signal. A failure of the first frame is the command's failure.
pub async fn run(draw: impl AsyncFn() -> Result<String>) -> Result<()> {
    let screen = Screen::new(stdout().is_terminal())?;
    tokio::select! {
        outcome = redraw(&screen, draw) => outcome,
        ended = signal() => ended,
    }
}

async fn redraw(screen: &Screen, draw: impl AsyncFn() -> Result<String>) -> Result<()> {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    screen.show(&draw().await?)?;
    loop {
        ticks.tick().await;
        let text = match draw().await {
            Ok(text) => text,
            Err(error) => format!("{error:#}\nretrying every second; Ctrl-C exits"),
        };
        screen.show(&text)?;
    }
}

/// The output of frames. On a terminal the cursor is hidden.
pub struct Screen {
    terminal: bool,
}

impl Screen {
    pub fn new(terminal: bool) -> Result<Self> {
        if terminal {
            output::bytes(format!("{HIDE_CURSOR}{ERASE_ALL}").as_bytes())?;
        }
        Ok(Self { terminal })
    }

    pub fn show(&self, text: &str) -> Result<()> {
        match (self.terminal, terminal_size()) {
            (true, Some((Width(columns), Height(rows)))) => {
                output::bytes(frame(text, columns.into(), rows.into()).as_bytes())
            }
            (true, None) => output::bytes(format!("{HOME}{ERASE_ALL}{text}\n").as_bytes()),
            (false, _) => output::line(&format!("{text}\n")),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.terminal {
            // Nothing can be done for a terminal that is gone.
            let _ = output::bytes(SHOW_CURSOR.as_bytes());
        }
    }
}

/// The text truncated to the terminal's size, with control codes to overwrite the previous frame.
fn frame(text: &str, columns: usize, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = rows.saturating_sub(1).max(1);
    let mut shown: Vec<String> = lines.iter().take(room).map(|line| cut(line, columns)).collect();
    if lines.len() > room {
        let hidden = lines.len() - room + 1;
        shown[room - 1] = cut(&format!("… and {hidden} more"), columns);
    }
    let body: String = shown.iter().map(|line| format!("{line}{ERASE_LINE}\n")).collect();
    format!("{HOME}{body}{ERASE_BELOW}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_fits_the_terminal() {
        let table = [
            ("a\nb", 10, 5, "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J"),
            ("abcdef\nb\nc\nd", 10, 3, "\x1b[Habcdef\x1b[K\n… and 3 mo\x1b[K\n\x1b[J"),
            ("abcdef", 3, 2, "\x1b[Habc\x1b[K\n\x1b[J"),
        ];
        for (text, columns, rows, expected) in table {
            assert_eq!(frame(text, columns, rows), expected, "{text:?}");
        }
    }
}
