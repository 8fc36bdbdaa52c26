//! The helper alone, for tests that have no `tepui` binary at hand.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(command) if command == tepui_container::HELPER_COMMAND => tepui_container::init_main(args),
        _ => ExitCode::from(2),
    }
}
