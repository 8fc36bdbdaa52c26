//! The exit of a command, as executors report it in the message of a status and frameworks read it there.
//!
//! The wording is that of v1's command and docker executors; frameworks match on it.

const EXITED: &str = "Command exited with status ";
/// The wording of the docker executor; `: ` and a reason may follow.
const CONTAINER_EXITED: &str = "Container exited with status ";
const TERMINATED: &str = "Command terminated with signal ";
const UNKNOWN: &str = "Unknown signal ";

/// Signals by number, from one on, as the C library names them.
const SIGNALS: [&str; 31] = [
    "Hangup",
    "Interrupt",
    "Quit",
    "Illegal instruction",
    "Trace/breakpoint trap",
    "Aborted",
    "Bus error",
    "Floating point exception",
    "Killed",
    "User defined signal 1",
    "Segmentation fault",
    "User defined signal 2",
    "Broken pipe",
    "Alarm clock",
    "Terminated",
    "Stack fault",
    "Child exited",
    "Continued",
    "Stopped (signal)",
    "Stopped",
    "Stopped (tty input)",
    "Stopped (tty output)",
    "Urgent I/O condition",
    "CPU time limit exceeded",
    "File size limit exceeded",
    "Virtual timer expired",
    "Profiling timer expired",
    "Window changed",
    "I/O possible",
    "Power failure",
    "Bad system call",
];

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandExit {
    Exited(i32),
    Signalled { signal: i32, core_dumped: bool },
}

impl CommandExit {
    /// Reads the message of a status; none if it says something else.
    ///
    /// ```
    /// use tepui_client::exit::CommandExit;
    /// assert_eq!(CommandExit::read("Command exited with status 7"), Some(CommandExit::Exited(7)));
    /// ```
    pub fn read(message: &str) -> Option<Self> {
        if let Some(code) = message.strip_prefix(EXITED) {
            return code.parse().ok().map(Self::Exited);
        }
        if let Some(rest) = message.strip_prefix(CONTAINER_EXITED) {
            let code = rest.split_once(": ").map_or(rest, |(code, _)| code);
            return code.parse().ok().map(Self::Exited);
        }
        let name = message.strip_prefix(TERMINATED)?;
        let (name, core_dumped) = match name.strip_suffix(" (core dumped)") {
            Some(name) => (name, true),
            None => (name, false),
        };
        signal_number(name).map(|signal| Self::Signalled { signal, core_dumped })
    }

    /// What a shell makes of it: the exit code, or 128 and the number of the signal.
    pub fn code(self) -> u8 {
        let code = match self {
            Self::Exited(code) => code,
            Self::Signalled { signal, .. } => 128 + signal,
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

impl std::fmt::Display for CommandExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Exited(code) => write!(f, "{EXITED}{code}"),
            Self::Signalled { signal, core_dumped } => {
                let known = usize::try_from(signal - 1).ok().and_then(|index| SIGNALS.get(index));
                match known {
                    Some(name) => write!(f, "{TERMINATED}{name}")?,
                    None => write!(f, "{TERMINATED}{UNKNOWN}{signal}")?,
                }
                f.write_str(if core_dumped { " (core dumped)" } else { "" })
            }
        }
    }
}

fn signal_number(name: &str) -> Option<i32> {
    match name.strip_prefix(UNKNOWN) {
        Some(number) => number.parse().ok(),
        None => {
            SIGNALS.iter().position(|known| *known == name).and_then(|index| i32::try_from(index + 1).ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_messages_round_trip() {
        let signalled = |signal, core_dumped| CommandExit::Signalled { signal, core_dumped };
        let table = [
            (CommandExit::Exited(0), "Command exited with status 0", 0),
            (CommandExit::Exited(255), "Command exited with status 255", 255),
            (signalled(1, false), "Command terminated with signal Hangup", 129),
            (signalled(9, false), "Command terminated with signal Killed", 137),
            (signalled(11, true), "Command terminated with signal Segmentation fault (core dumped)", 139),
            (signalled(31, false), "Command terminated with signal Bad system call", 159),
            (signalled(40, false), "Command terminated with signal Unknown signal 40", 168),
        ];
        for (ending, message, code) in table {
            assert_eq!(ending.to_string(), message);
            assert_eq!(CommandExit::read(message), Some(ending), "{message}");
            assert_eq!(ending.code(), code, "{message}");
        }
        for message in
            ["Container exited with status 137", "Container exited with status 137: Memory limit exceeded"]
        {
            assert_eq!(CommandExit::read(message), Some(CommandExit::Exited(137)), "{message}");
        }
        for other in ["", "Command exited with status x", "Command terminated with signal Tickle", "killed"] {
            assert_eq!(CommandExit::read(other), None, "{other}");
        }
    }
}
