//! The `tepui` binary: master, agent, executors and the command line, in one file to copy.
//!
//! Owns the mapping from what is typed to what the programs take; decides nothing about a cluster.
#![forbid(unsafe_code)]

mod command;
mod flags;
mod logging;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use command::{agents, dev, logs, run, tasks};
use flags::agent::AgentFlags;
use flags::master::MasterFlags;

/// Flags and their values.
type Flags = Vec<(String, String)>;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A cluster manager that speaks the Mesos v1 API.
#[derive(Parser)]
#[command(name = "tepui", version, subcommand_required = true, arg_required_else_help = true)]
struct Tepui {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster on this machine: a master and agents in one process.
    Dev(dev::Dev),
    /// Start a master.
    Master(Box<MasterFlags>),
    /// Start an agent.
    Agent(Box<AgentFlags>),
    /// Run a command as a task, show its output and exit with its code.
    Run(run::Run),
    /// List tasks.
    Tasks(tasks::Tasks),
    /// List agents.
    Agents(agents::Agents),
    /// Show what a task wrote.
    Logs(logs::Logs),
    /// Show which version this is.
    Version,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let rest = arguments.get(2..).unwrap_or_default();
    // Programs that agents start: no flags of ours, no help, as little as possible before they run.
    match arguments.get(1).map(String::as_str) {
        Some("container-init") => return tepui_container::init_main(rest.iter().map(OsString::from)),
        Some("executor") => return executor(rest),
        _ => {}
    }
    match parse(arguments).and_then(|(tepui, shown)| dispatch(tepui, shown)) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

fn executor(arguments: &[String]) -> ExitCode {
    match arguments.first().map(String::as_str) {
        Some("command") => tepui_executors::command::main(&arguments[1..]),
        Some("default") => tepui_executors::default::main(&arguments[1..]),
        other => {
            eprintln!("tepui executor: there is no executor {other:?}; there are: command, default");
            ExitCode::FAILURE
        }
    }
}

/// Prints an error: ours in one line with its causes, clap's as clap writes them.
fn fail(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<clap::Error>() {
        Some(error) => error.exit(),
        None => {
            eprintln!("tepui: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What was typed, and every flag of the subcommand with its value, as `/flags` shows them.
fn parse(arguments: Vec<String>) -> Result<(Tepui, Flags)> {
    let mut tree = Tepui::command();
    tree.build();
    let mut arguments = arguments.into_iter();
    let mut typed: Vec<OsString> = arguments.next().map(OsString::from).into_iter().collect();
    let rest: Vec<String> = arguments.collect();
    match rest.first().and_then(|name| tree.find_subcommand(name)) {
        Some(subcommand) => {
            typed.push(rest[0].clone().into());
            typed.extend(flags::normalise(subcommand, rest[1..].to_vec(), |name| std::env::var(name).ok())?);
        }
        None => typed.extend(rest.into_iter().map(OsString::from)),
    }
    let matches = Tepui::command().try_get_matches_from(typed)?;
    let shown = matches.subcommand().map(|(_, matches)| shown_flags(matches)).unwrap_or_default();
    Ok((Tepui::from_arg_matches(&matches)?, shown))
}

fn shown_flags(matches: &ArgMatches) -> Flags {
    let value = |id: &str| {
        let values: Vec<_> = matches.get_raw(id)?.map(|value| value.to_string_lossy()).collect();
        Some((id.to_string(), values.join(",")))
    };
    // clap also lists the groups that structs make; they have no values of their own.
    let ids = matches
        .ids()
        .map(clap::Id::as_str)
        .filter(|id| id.chars().all(|c| c.is_lowercase() || c == '_' || c.is_numeric()));
    ids.filter_map(value).collect()
}

fn dispatch(tepui: Tepui, shown: Flags) -> Result<ExitCode> {
    match tepui.command {
        Command::Dev(dev) => dev.run(),
        Command::Master(flags) => command::master::run(*flags, shown),
        Command::Agent(flags) => command::agent::run(*flags, shown),
        Command::Run(run) => run.run(),
        Command::Tasks(tasks) => tasks.run(),
        Command::Agents(agents) => agents.run(),
        Command::Logs(logs) => logs.run(),
        Command::Version => {
            println!("tepui {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
    }
}
