//! The `tepui` binary: master, agent, executors and command line in one file.
//!
//! Maps arguments to the options of the programs; makes no decisions about a cluster.
#![forbid(unsafe_code)]

mod amount;
mod command;
mod confirm;
mod detail;
mod flags;
mod help;
mod listing;
mod logging;
mod output;
mod similar;
mod table;
mod terminal;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use command::{
    agent, agents, attach, bench, completions, dev, drain, events, exec, executors, explain, files,
    framework, frameworks, logs, maintenance, metrics, offers, prune_images, quota, reserve, roles, run,
    service, summary, swarm, task, tasks, teardown, volumes, weights,
};
use flags::master::MasterFlags;
use tepui_shell_master::EtcdAddress;

/// Flags and their values.
type Flags = Vec<(String, String)>;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Cluster manager with the Mesos v1 API.
#[derive(Parser)]
#[command(
    name = "tepui",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Tepui {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a development cluster: a master and agents in one process.
    Dev(dev::Dev),
    /// Start a master.
    Master(Box<MasterFlags>),
    /// Start an agent; `tepui agent ID` shows one.
    Agent(Box<agent::Agent>),
    /// Show a one-line summary of the cluster.
    Summary(summary::Summary),
    /// List tasks.
    Tasks(tasks::Tasks),
    /// List agents.
    Agents(agents::Agents),
    /// List frameworks.
    Frameworks(frameworks::Frameworks),
    /// List roles with their weights, quotas and resources.
    Roles(roles::Roles),
    /// List outstanding offers.
    Offers(offers::Offers),
    /// List executors, or show one with its tasks.
    Executors(executors::Executors),
    /// Show a task with its statuses.
    Task(task::Task),
    /// Show a framework with its tasks.
    Framework(framework::Framework),
    /// Explain the offers of a framework or a role.
    Explain(explain::Explain),
    /// Print the output of a task.
    Logs(logs::Logs),
    /// List the sandbox files of a task.
    Files(files::Files),
    /// Print the operator event stream.
    Events(events::Events),
    /// Show metrics of the master or an agent.
    Metrics(metrics::Metrics),
    /// List, set and remove quotas.
    Quota(quota::Quota),
    /// Reserve resources of an agent for a role.
    Reserve(reserve::Reserve),
    /// Unreserve resources of an agent.
    Unreserve(reserve::Unreserve),
    /// List, create, resize and destroy persistent volumes.
    Volumes(volumes::Volumes),
    /// List, schedule, start and stop maintenance of machines.
    Maintenance(maintenance::Maintenance),
    /// Drain an agent: kill its tasks and stop offering it.
    Drain(drain::Drain),
    /// Stop offering an agent; its tasks keep running.
    Deactivate(drain::Deactivate),
    /// Offer a deactivated or drained agent again.
    Reactivate(drain::Reactivate),
    /// Mark an agent as permanently gone.
    Gone(drain::Gone),
    /// Remove unused images from an agent.
    PruneImages(prune_images::PruneImages),
    /// Tear down a framework and kill its tasks.
    Teardown(teardown::Teardown),
    /// List and set the weights of roles.
    Weights(weights::Weights),
    /// Run a command as a task, print its output and exit with its code.
    Run(run::Run),
    /// Run, inspect and change stateful services.
    Service(service::Service),
    /// Serve the Docker API for the whole cluster.
    Swarm(swarm::Swarm),
    /// Run a command in the container of a running task.
    Exec(exec::Exec),
    /// Attach to the terminal of a task.
    Attach(attach::Attach),
    /// Run the benchmarks of SPECIFICATION.md.
    Bench(bench::Bench),
    /// Print shell completions.
    Completions(completions::Completions),
    /// Print the version.
    Version,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let rest = arguments.get(2..).unwrap_or_default();
    let program = arguments.first().and_then(|path| path.rsplit('/').next());
    if program == Some(tepui_service_shell::bootstrap::FILE_NAME) {
        return tepui_service_shell::bootstrap::main(&arguments[1..]);
    }
    // Programs that agents start: no flags of ours, no help, as little as possible before they run.
    match arguments.get(1).map(String::as_str) {
        Some("container-init") => return tepui_container::init_main(rest.iter().map(OsString::from)),
        Some("executor") => return executor(rest),
        Some("swarm") => {
            let done = swarm::run(rest);
            tepui_log::flush();
            return done.unwrap_or_else(|error| fail(&error));
        }
        _ => {}
    }
    let done =
        parse(arguments, |name| std::env::var(name).ok()).and_then(|(tepui, shown)| dispatch(tepui, shown));
    tepui_log::flush();
    done.unwrap_or_else(|error| fail(&error))
}

fn executor(arguments: &[String]) -> ExitCode {
    match arguments.first().map(String::as_str) {
        Some("command") => tepui_executors::command::main(&arguments[1..]),
        Some("default") => tepui_executors::default::main(&arguments[1..]),
        Some("container") => tepui_executors::container::main(&arguments[1..]),
        Some("docker") => tepui_executors::docker::main(&arguments[1..]),
        other => {
            eprintln!(
                "tepui executor: unknown executor {other:?}; executors: command, container, default, docker"
            );
            ExitCode::FAILURE
        }
    }
}

/// Prints an error: ours with its causes and suggestion, clap's verbatim.
fn fail(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<clap::Error>() {
        Some(error) => error.exit(),
        None if output::is_closed(error) => ExitCode::SUCCESS,
        None => {
            let text = format!("{error:#}");
            let lines: Vec<String> = text.lines().map(output::printable).collect();
            eprintln!("tepui: {}", lines.join("\n  "));
            ExitCode::FAILURE
        }
    }
}

/// What was typed, and every flag of the subcommand with its value, as `/flags` shows them.
fn parse(arguments: Vec<String>, lookup: impl Fn(&str) -> Option<String>) -> Result<(Tepui, Flags)> {
    let mut tree = tree();
    tree.build();
    let mut arguments = arguments.into_iter();
    let mut typed: Vec<OsString> = arguments.next().map(OsString::from).into_iter().collect();
    let rest: Vec<String> = master_last(arguments.collect());
    match rest.first().and_then(|name| tree.find_subcommand(name)) {
        Some(subcommand) => {
            typed.push(rest[0].clone().into());
            typed.extend(flags::normalise(subcommand, rest[1..].to_vec(), lookup)?);
        }
        None => typed.extend(rest.into_iter().map(OsString::from)),
    }
    let matches = self::tree().try_get_matches_from(typed)?;
    let shown = matches.subcommand().map(|(_, matches)| shown_flags(matches)).unwrap_or_default();
    Ok((Tepui::from_arg_matches(&matches)?, shown))
}

/// `--master` before the command means the same as behind it.
fn master_last(mut arguments: Vec<String>) -> Vec<String> {
    let words = match arguments.first().map(String::as_str) {
        Some("--master") => 2,
        Some(first) if first.starts_with("--master=") => 1,
        Some(_) | None => return arguments,
    };
    if arguments.len() > words {
        let command = arguments.remove(words);
        arguments.insert(0, command);
    }
    arguments
}

/// Every command and flag, with the help that shows them in groups.
fn tree() -> clap::Command {
    // The cluster of a service may be set before and after the subcommand.
    let services = |service: clap::Command| service.mut_args(|flag| flag.global(true));
    let command = Tepui::command().mut_subcommand("service", services);
    help::grouped(flags::heading::grouped(command))
}

/// The text of a flag without the passwords in it.
fn without_secrets(id: &str, text: &str) -> String {
    match id {
        // Logins of registries, if it is not a file that has them.
        "docker_config" if text.trim_start().starts_with('{') => "***".to_owned(),
        _ => EtcdAddress::masked(text),
    }
}

fn shown_flags(matches: &ArgMatches) -> Flags {
    let value = |id: &str| {
        let values: Vec<_> = matches.try_get_raw(id).ok()??.map(|value| value.to_string_lossy()).collect();
        Some((id.to_string(), without_secrets(id, &values.join(","))))
    };
    // clap also lists the groups that structs make; they have no values of their own.
    let ids = matches
        .ids()
        .map(clap::Id::as_str)
        .filter(|id| id.chars().all(|c| c.is_lowercase() || c == '_' || c.is_numeric()));
    ids.filter_map(value).collect()
}

fn dispatch(tepui: Tepui, shown: Flags) -> Result<ExitCode> {
    // Programs warn in their log.
    if !matches!(tepui.command, Command::Dev(_) | Command::Master(_) | Command::Agent(_)) {
        flags::access::open_files(&shown).iter().for_each(|file| eprintln!("tepui: warning: {file}"));
    }
    match tepui.command {
        Command::Dev(dev) => dev.run(),
        Command::Master(flags) => command::master::run(*flags, shown),
        Command::Agent(agent) => agent.run(shown),
        Command::Summary(summary) => summary.run(),
        Command::Tasks(tasks) => tasks.run(),
        Command::Agents(agents) => agents.run(),
        Command::Frameworks(frameworks) => frameworks.run(),
        Command::Roles(roles) => roles.run(),
        Command::Offers(offers) => offers.run(),
        Command::Executors(executors) => executors.run(),
        Command::Task(task) => task.run(),
        Command::Framework(framework) => framework.run(),
        Command::Bench(bench) => bench.run(),
        Command::Explain(explain) => explain.run(),
        Command::Logs(logs) => logs.run(),
        Command::Files(files) => files.run(),
        Command::Events(events) => events.run(),
        Command::Metrics(metrics) => metrics.run(),
        Command::Weights(weights) => weights.run(),
        Command::Service(service) => service.run(),
        Command::Swarm(swarm) => swarm.run(),
        Command::Quota(quota) => quota.run(),
        Command::Reserve(reserve) => reserve.run(),
        Command::Unreserve(unreserve) => unreserve.run(),
        Command::Volumes(volumes) => volumes.run(),
        Command::Maintenance(maintenance) => maintenance.run(),
        Command::Drain(drain) => drain.run(),
        Command::Deactivate(deactivate) => deactivate.run(),
        Command::Reactivate(reactivate) => reactivate.run(),
        Command::Gone(gone) => gone.run(),
        Command::PruneImages(prune) => prune.run(),
        Command::Teardown(teardown) => teardown.run(),
        Command::Run(run) => run.run(),
        Command::Exec(exec) => exec.run(),
        Command::Attach(attach) => attach.run(),
        Command::Completions(completions) => completions.run(tree()),
        Command::Version => {
            output::line(&format!("tepui {}", env!("CARGO_PKG_VERSION")))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests;
