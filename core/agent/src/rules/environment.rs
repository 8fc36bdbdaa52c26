//! The environment of an executor.
//!
//! Complete: nothing is inherited from the agent. Variables that depend on the container's file system
//! (`MESOS_SANDBOX`, `PATH`) are set by the containerizer.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::time::Duration;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{Secrets, duration_text};

use crate::Config;
use crate::state::{Executor, Framework};

pub(crate) type Environment = BTreeMap<String, String>;

/// Later ones win: the operator's, then the agent's, then those of the command.
pub(crate) fn of_executor(
    config: &Config,
    agent_id: &str,
    framework: &Framework,
    executor: &Executor,
) -> Environment {
    let mut all = Environment::new();
    let mut set = |name: &str, value: &str| all.insert(name.into(), value.into());
    set("LIBPROCESS_IP", agent_ip(config));
    for (name, value) in config.executor_environment_variables.iter().flatten() {
        set(name, value);
    }
    set("LIBPROCESS_PORT", "0");
    set("MESOS_FRAMEWORK_ID", framework.id.as_str());
    set("MESOS_EXECUTOR_ID", executor.id.as_str());
    set("MESOS_SLAVE_ID", agent_id);
    set("MESOS_DIRECTORY", &executor.sandbox);
    set("MESOS_SANDBOX", &executor.sandbox);
    set("MESOS_SLAVE_PID", &config.pid);
    set("MESOS_AGENT_ENDPOINT", &config.endpoint);
    set("MESOS_CHECKPOINT", if framework.is_checkpointing() { "1" } else { "0" });
    set("MESOS_HTTP_COMMAND_EXECUTOR", "1");
    let grace = shutdown_grace(config, executor);
    set("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", &duration_text(grace));
    if framework.is_checkpointing() {
        set("MESOS_RECOVERY_TIMEOUT", &duration_text(config.recovery_timeout));
        let backoff = duration_text(config.executor_reregistration_timeout);
        set("MESOS_SUBSCRIPTION_BACKOFF_MAX", &backoff);
    }
    match executor.generated {
        true => add_task(&mut all, &executor.info.command),
        false => add_command(&mut all, &executor.info.command),
    }
    all
}

/// Variables of a task for its generated executor, which hands them on and may have another user than the task: none that
/// change the executor itself. Those it finds in the command when it starts the task.
fn add_task(all: &mut Environment, command: &pb::CommandInfo) {
    let own = all.clone();
    add_command(all, command);
    all.retain(|name, _| !is_of_loader(name));
    all.extend(own);
}

/// Variables that the loader, the C library or our own program obeys.
fn is_of_loader(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["LD_", "TEPUI_", "MALLOC_", "MIMALLOC_"];
    const NAMES: [&str; 7] =
        ["GCONV_PATH", "GLIBC_TUNABLES", "HOSTALIASES", "LOCPATH", "NLSPATH", "RESOLV_HOST_CONF", "TZDIR"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name)
}

/// Adds the command's own variables. Of several with the same name the last one wins, be it a value or a reference.
pub(crate) fn add_command(all: &mut Environment, command: &pb::CommandInfo) {
    for variable in &command.environment.variables {
        match value_of(variable) {
            Some(value) => drop(all.insert(variable.name.clone(), value)),
            None => drop(all.remove(&variable.name)), // See `secrets`.
        }
    }
}

/// Variables of an executor that are secrets by reference, under the rules of [`of_executor`].
pub(crate) fn secrets_of_executor(
    framework: &Framework,
    executor: &Executor,
    environment: &Environment,
) -> Secrets {
    let mut secrets = secrets(framework.info.principal.as_deref(), &executor.info.command);
    if executor.generated {
        secrets.variables.retain(|name, _| !is_of_loader(name) && !environment.contains_key(name));
    }
    secrets
}

/// Variables of a command that are secrets by reference, of a framework with this principal.
pub(crate) fn secrets(principal: Option<&str>, command: &pb::CommandInfo) -> Secrets {
    let mut variables = BTreeMap::new();
    for own in &command.environment.variables {
        match value_of(own) {
            Some(_) => drop(variables.remove(&own.name)),
            None => drop(variables.insert(own.name.clone(), (*own.secret.reference).clone())),
        }
    }
    Secrets { principal: principal.map(Into::into), variables }
}

/// None: a secret by reference, which the containerizer resolves. One given by value is resolved here.
fn value_of(variable: &pb::environment::Variable) -> Option<String> {
    match variable.r#type {
        None | Some(pb::environment::variable::Type::VALUE | pb::environment::variable::Type::UNKNOWN) => {
            Some(variable.value.clone().unwrap_or_default())
        }
        Some(pb::environment::variable::Type::SECRET) => {
            let data = &variable.secret.value.as_option()?.data;
            Some(String::from_utf8_lossy(data).to_string())
        }
    }
}

/// The part of the endpoint before the port, without the brackets of an IPv6 address.
pub(crate) fn agent_ip(config: &Config) -> &str {
    let host = config.endpoint.rsplit_once(':').map_or(config.endpoint.as_str(), |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The executor's own grace period, else the operator's; that of a preemption is the operator's alone.
pub(crate) fn shutdown_grace(config: &Config, executor: &Executor) -> Duration {
    if executor.preempted().is_some() {
        return config.slack_eviction_grace;
    }
    match executor.info.shutdown_grace_period.as_option() {
        Some(own) => Duration::from_nanos(u64::try_from(own.nanoseconds).unwrap_or(0)),
        None => config.executor_shutdown_grace_period,
    }
}
