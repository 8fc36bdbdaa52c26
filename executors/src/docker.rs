//! The docker executor: runs the command of one task in a container of a Docker engine.
//!
//! It uses the machine of the command executor. The containerizer passes the container's configuration in the
//! environment; the command and its environment are part of the task.

mod command_check;
mod network;
mod termination;

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use nix::sys::signal::Signal;
use serde_json::Value;
use tepui_client::v1::{CommandInfo, NetworkInfo, TaskInfo, environment, network_info};
use tepui_docker::{EndWatch, Engine, EngineFault, Exec, Inspected, Output, Running, Setup};

use crate::checks::{Outcome, Probe, Target};
use crate::command::machine::{CommandMachine, Effect, IoEvent, Started};
use crate::process;
use crate::runner::{self, Perform, Reports};

/// Runs a docker executor until it exits.
pub fn main(_: &[String]) -> ExitCode {
    let setup = match Setup::from_env() {
        Ok(setup) => setup,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    runner::run(|environment, reports| {
        let grace = environment.shutdown_grace_period;
        let machine = CommandMachine::new("docker", grace, Some(grace.max(setup.stop_timeout)));
        let container =
            Container { engine: Engine::at(&setup.socket), setup: Arc::new(setup), found: Arc::default() };
        (machine, DockerPerformer { container, reports })
    })
}

/// The container, as far as it is known. Cheap to clone.
#[derive(Clone, Debug)]
struct Container {
    engine: Engine,
    setup: Arc<Setup>,
    /// Known once it runs.
    found: Arc<OnceLock<Inspected>>,
}

struct DockerPerformer {
    container: Container,
    reports: Reports<IoEvent>,
}

impl Perform<CommandMachine> for DockerPerformer {
    async fn perform(&mut self, effect: Effect) -> ControlFlow<ExitCode> {
        let container = self.container.clone();
        match effect {
            Effect::Update(status) => self.reports.update(status).await,
            Effect::Spawn(task) => {
                // Reports its progress.
                tokio::spawn(container.run(*task, self.reports.clone()));
            }
            Effect::Signal(signal) => {
                tokio::spawn(container.signal(signal)); // Its exit, or the later SIGKILL, shows the outcome.
            }
            Effect::Probe(which, attempt) => {
                self.reports.later(async move { IoEvent::Probed(which, container.probe(&attempt).await) });
            }
            Effect::Exit(code) => return ControlFlow::Break(ExitCode::from(code)),
        }
        ControlFlow::Continue(())
    }
}

impl Container {
    async fn run(self, task: TaskInfo, reports: Reports<IoEvent>) {
        let mut document = document(&self.setup.document, &task);
        let mut watch = EndWatch::begin(&self.engine, &self.setup, &mut document).await;
        // A send error means that the executor has exited.
        let running = match self.start(&task, &document).await {
            Ok((running, started)) => {
                let _ = reports.io_events.send(IoEvent::Spawned(Ok(started))).await;
                running
            }
            Err(fault) => {
                let error = format!("Failed to start the container: {fault}");
                let _ = reports.io_events.send(IoEvent::Spawned(Err(error))).await;
                return;
            }
        };
        let output = match Output::own() {
            Ok(output) => output,
            Err(err) => {
                let error = format!("Failed to pass on the container's output: {err}");
                let _ = reports.io_events.send(IoEvent::Ended(Err(error))).await;
                return;
            }
        };
        if let Some(found) = self.found.get() {
            watch.follow(found.state.pid);
        }
        let ended = match running.follow(output).await {
            Ok(code) => {
                let config = &self.setup.document["HostConfig"];
                Ok(termination::ended(
                    code,
                    watch.explain(&self.engine, &self.setup.name, config, code).await,
                ))
            }
            Err(fault) => Err(format!("Failed to get exit status of container: {fault}")),
        };
        let _ = reports.io_events.send(IoEvent::Ended(ended)).await;
    }

    async fn start(&self, task: &TaskInfo, document: &Value) -> Result<(Running, Started), EngineFault> {
        let running = tepui_docker::start(&self.engine, &self.setup.name, document).await?;
        // A container that exited at once may be removed already.
        let Ok(Some(found)) = self.engine.inspect(&self.setup.name).await else {
            return Ok((running, Started::default()));
        };
        let started = Started {
            // A list, as `docker inspect` prints.
            data: Some(format!("[{}]", found.raw).into_bytes()),
            network_infos: networks(task, &found),
        };
        self.found.set(found).ok(); // It is started once.
        Ok((running, started))
    }

    /// A polite kill uses the stop signal of the image.
    async fn signal(self, signal: Signal) {
        let wanted = self.found.get().and_then(|found| found.stop_signal.as_deref());
        let name = match signal {
            Signal::SIGTERM => wanted.unwrap_or(signal.as_str()),
            other => other.as_str(),
        };
        if let Err(fault) = self.engine.kill(&self.setup.name, name).await {
            tracing::warn!(%fault, "the container was not signalled");
        }
    }

    async fn probe(&self, probe: &Probe) -> Outcome {
        match &probe.target {
            Target::Command(command) => {
                let exec = Exec { arguments: arguments(command), environment: variables(command) };
                command_check::run(self, &exec, probe.timeout).await
            }
            Target::Http { .. } | Target::Tcp { .. } => {
                let pid = self.found.get().map_or(0, |found| found.state.pid);
                network::probe(pid, probe.clone()).await
            }
        }
    }
}

/// What a check runs.
fn arguments(command: &CommandInfo) -> Vec<String> {
    let value = command.value.clone().unwrap_or_default();
    match command.shell.unwrap_or(true) {
        true => vec![String::from("/bin/sh"), String::from("-c"), value],
        false => std::iter::once(value).chain(command.arguments.iter().cloned()).collect(),
    }
}

/// The containerizer's configuration, completed with the fields of the task.
fn document(prepared: &Value, task: &TaskInfo) -> Value {
    let command = &task.command;
    let mut document =
        tepui_docker::command(command.shell.unwrap_or(true), command.value.as_deref(), &command.arguments);
    let mut environment = variables(command);
    environment.extend(
        prepared["Env"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
    );
    environment.extend(process::allocation_role(task).map(|role| format!("MESOS_ALLOCATION_ROLE={role}")));
    if let (Value::Object(document), Value::Object(prepared)) = (&mut document, prepared) {
        document.extend(prepared.clone());
    }
    document["Env"] = environment.into();
    document
}

/// `NAME=value`. Secrets were resolved by the agent, into the environment of this process.
fn variables(command: &CommandInfo) -> Vec<String> {
    let value = |variable: &environment::Variable| match variable.r#type {
        Some(environment::variable::Type::SECRET) => std::env::var(&variable.name).unwrap_or_default(),
        Some(environment::variable::Type::VALUE | environment::variable::Type::UNKNOWN) | None => {
            variable.value.clone().unwrap_or_default()
        }
    };
    command.environment.variables.iter().map(|one| format!("{}={}", one.name, value(one))).collect()
}

/// The container's addresses in the task's network information.
fn networks(task: &TaskInfo, found: &Inspected) -> Vec<NetworkInfo> {
    let address = |address: tepui_docker::Address| network_info::IPAddress {
        protocol: Some(match address.is_ipv6 {
            true => network_info::Protocol::IPv6,
            false => network_info::Protocol::IPv4,
        }),
        ip_address: Some(address.ip),
        ..Default::default()
    };
    let ip_addresses: Vec<_> = found.addresses().into_iter().map(address).collect();
    let asked = task.container.network_infos.first().cloned().unwrap_or_default();
    match ip_addresses.is_empty() {
        true => Vec::new(),
        false => vec![NetworkInfo { ip_addresses, ..asked }],
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;
    use tepui_proto::json as proto_json;

    use super::*;

    fn task(text: &str) -> TaskInfo {
        proto_json::from_slice(text.replace('\'', "\"").as_bytes()).expect("a task")
    }

    #[test]
    fn task_fields_complete_the_container_config() {
        let prepared = json!({"Image": "i", "Env": ["MESOS_SANDBOX=/s", "A=3"]});
        let head = "'name':'t','task_id':{'value':'t'},'agent_id':{'value':'a'}";
        let shell = task(&format!(
            "{{{head},'resources':[{{'name':'cpus','type':'SCALAR','allocation_info':{{'role':'dev'}}}}],
              'command':{{'value':'echo','environment':{{'variables':[{{'name':'A','value':'1'}}]}}}}}}"
        ));
        let own = task(&format!("{{{head},'command':{{'shell':false,'arguments':['x']}}}}"));
        let chosen = json!({"Entrypoint": ["/e"]});
        let all = [document(&prepared, &shell), document(&prepared, &own), document(&chosen, &shell)];
        let text: String = all.iter().map(|document| format!("{document}\n")).collect();
        expect![[r#"
            {"Cmd":["-c","echo"],"Entrypoint":["/bin/sh"],"Env":["A=1","MESOS_SANDBOX=/s","A=3","MESOS_ALLOCATION_ROLE=dev"],"Image":"i"}
            {"Cmd":["x"],"Env":["MESOS_SANDBOX=/s","A=3"],"Image":"i"}
            {"Cmd":["-c","echo"],"Entrypoint":["/e"],"Env":["A=1","MESOS_ALLOCATION_ROLE=dev"]}
        "#]]
        .assert_eq(&text);
    }
}
