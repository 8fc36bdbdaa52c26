//! TaskInfo and ExecutorInfo of a pod: pure functions of the spec, the pod instance, its agent and its ports.
//!
//! Two builds from the same arguments are equal, byte for byte: the master compares executors of one pod.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::{Format, Resource};

use super::config::Config;
use super::container::{executor_container, task_container};
use super::context::{Context, labels, port_key};
use super::need::BRIDGE_NETWORK;
use super::site::Site;
use crate::bootstrap;
use crate::spec::{HealthCheck, Limit, Limits, Port, ReadinessCheck, ResourceSet, TaskSpec, Visibility};

/// `<service>__<pod or task instance>__<uuid>`.
pub(super) fn id(service: &str, name: &str, uuid: &str) -> String {
    format!("{}__{name}__{uuid}", service.trim_matches('/').replace('/', "."))
}

pub(super) fn executor(
    context: &Context<'_>,
    framework_id: &str,
    executor_id: &str,
    resources: &[Resource],
) -> pb::ExecutorInfo {
    pb::ExecutorInfo {
        r#type: Some(pb::executor_info::Type::DEFAULT),
        executor_id: pb::ExecutorID { value: executor_id.to_owned(), ..Default::default() }.into(),
        framework_id: pb::FrameworkID { value: framework_id.to_owned(), ..Default::default() }.into(),
        name: Some(context.pod.name.clone()),
        container: executor_container(context).into(),
        resources: resources.iter().map(|own| own.to_proto(Format::Post)).collect(),
        labels: labels([("DCOS_SPACE", "/")]).into(),
        ..Default::default()
    }
}

pub(super) fn task(
    context: &Context<'_>,
    task: &TaskSpec,
    task_id: &str,
    resources: &[Resource],
    is_paused: bool,
) -> pb::TaskInfo {
    let set = context.pod.resource_set(&task.resource_set);
    let environment = environment(context, task, set);
    let health_check = task.health_check.as_ref().filter(|_| !is_paused);
    let readiness_check = task.readiness_check.as_ref().filter(|_| !is_paused);
    pb::TaskInfo {
        name: context.instance.task_name(&task.name),
        task_id: pb::TaskID { value: task_id.to_owned(), ..Default::default() }.into(),
        agent_id: context.site.agent.to_proto().into(),
        resources: resources.iter().map(|own| own.to_proto(Format::Post)).collect(),
        command: command(context, task, &environment, is_paused).into(),
        container: task_container(context, task).into(),
        health_check: health_check.map(|check| self::health_check(check, &environment)).into(),
        check: readiness_check.map(|check| self::readiness_check(check, &environment)).into(),
        kill_policy: kill_policy(task).into(),
        labels: task_labels(context, task).into(),
        discovery: discovery(context, task, set).into(),
        limits: set.map(|set| limits(&set.limits)).unwrap_or_default(),
        ..Default::default()
    }
}

fn task_labels(context: &Context<'_>, task: &TaskSpec) -> pb::Labels {
    let Site { hostname, region, zone, attributes, .. } = context.site;
    let attributes: Vec<String> = attributes.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    let index = context.instance.index.to_string();
    let attributes = attributes.join(";");
    let mut all = vec![
        ("target_configuration", context.configuration),
        ("task_type", &context.pod.name),
        ("index", &index),
        ("offer_attributes", &attributes),
        ("offer_hostname", hostname),
    ];
    all.extend(region.as_deref().map(|region| ("offer_region", region)));
    all.extend(zone.as_deref().map(|zone| ("offer_zone", zone)));
    all.extend(task.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    labels(all)
}

/// The environment of the command and of both checks, by name.
fn environment(
    context: &Context<'_>,
    task: &TaskSpec,
    set: Option<&ResourceSet>,
) -> BTreeMap<String, String> {
    let Config { service, api_host, api_port, service_tld, vip_tld, .. } = context.config;
    let instance = context.instance.task_name(&task.name);
    let mut all = context.config.environment.clone();
    all.extend(task.env.clone());
    let own = [
        ("POD_INSTANCE_INDEX", context.instance.index.to_string()),
        ("FRAMEWORK_NAME", service.clone()),
        ("FRAMEWORK_HOST", format!("{}.{service_tld}", dns_name(service))),
        ("FRAMEWORK_VIP_HOST", format!("{}.{vip_tld}", service.replace('/', ""))),
        ("SCHEDULER_API_HOSTNAME", api_host.clone()),
        ("SCHEDULER_API_PORT", api_port.to_string()),
        ("TASK_NAME", instance.clone()),
        (instance.as_str(), "true".to_owned()),
        ("PLACEMENT_REFERENCED_REGION", context.references_region.to_string()),
        ("PLACEMENT_REFERENCED_ZONE", context.references_zone.to_string()),
    ];
    all.extend(own.map(|(name, value)| (name.to_owned(), value)));
    for port in set.map(|set| set.ports.as_slice()).unwrap_or_default() {
        if let (Some(name), Some(number)) = (&port.env_key, port_number(context, task, port)) {
            all.insert(name.clone(), number.to_string());
        }
    }
    all
}

/// A service in names of `SERVICE_TLD`: no slashes, dots as dashes.
pub(super) fn dns_name(name: &str) -> String {
    name.replace('/', "").replace('.', "-")
}

fn port_number(context: &Context<'_>, task: &TaskSpec, port: &Port) -> Option<u64> {
    context.ports.get(&port_key(&task.resource_set, &port.name)).copied()
}

fn variables<'v>(all: impl IntoIterator<Item = (&'v String, &'v String)>) -> pb::Environment {
    let variable = |(name, value): (&String, &String)| pb::environment::Variable {
        name: name.clone(),
        value: Some(value.clone()),
        ..Default::default()
    };
    pb::Environment { variables: all.into_iter().map(variable).collect(), ..Default::default() }
}

fn command(
    context: &Context<'_>,
    task: &TaskSpec,
    environment: &BTreeMap<String, String>,
    is_paused: bool,
) -> pb::CommandInfo {
    let mut all = environment.clone();
    for config in &task.configs {
        let name: String = config.name.to_ascii_uppercase().chars().map(env_character).collect();
        all.insert(
            format!("{}{name}", bootstrap::TEMPLATE_PREFIX),
            format!("config-templates/{},{}", config.name, config.dest),
        );
    }
    all.extend(context.parameters.clone());
    all.extend(context.site.region.clone().map(|region| ("REGION".to_owned(), region)));
    all.extend(context.site.zone.clone().map(|zone| ("ZONE".to_owned(), zone)));
    let mut environment = variables(&all);
    for secret in &context.pod.secrets {
        environment.variables.extend(secret.env_key.as_ref().map(|key| pb::environment::Variable {
            name: key.clone(),
            r#type: Some(pb::environment::variable::Type::SECRET),
            secret: super::container::secret(&secret.secret).into(),
            ..Default::default()
        }));
    }
    let value = if is_paused { &context.config.pause_command } else { &task.cmd };
    pb::CommandInfo {
        uris: uris(context, task),
        environment: environment.into(),
        shell: Some(true),
        value: Some(value.clone()),
        user: Some(context.spec.user.clone()),
        ..Default::default()
    }
}

fn env_character(character: char) -> char {
    if character.is_ascii_uppercase() || character.is_ascii_digit() { character } else { '_' }
}

fn uris(context: &Context<'_>, task: &TaskSpec) -> Vec<pb::command_info::URI> {
    let plain = |uri: &String| pb::command_info::URI { value: uri.clone(), ..Default::default() };
    let mut all: Vec<pb::command_info::URI> = context.pod.uris.iter().map(plain).collect();
    let Config { api_scheme, api_host, api_port, .. } = context.config;
    let host = if api_host.contains(':') { format!("[{api_host}]") } else { api_host.clone() };
    let artifacts = format!("{api_scheme}://{host}:{api_port}/v1/artifacts");
    if bootstrap::is_used(context.pod, task) {
        all.push(pb::command_info::URI {
            value: format!("{artifacts}/{}", bootstrap::FILE_NAME),
            executable: Some(true),
            // One download for all tasks of an agent.
            cache: Some(true),
            output_file: Some(bootstrap::FILE_NAME.to_owned()),
            ..Default::default()
        });
    }
    all.extend(task.configs.iter().map(|config| pb::command_info::URI {
        value: format!(
            "{artifacts}/template/{}/{}/{}/{}",
            context.configuration, context.pod.name, task.name, config.name
        ),
        extract: Some(false),
        output_file: Some(format!("config-templates/{}", config.name)),
        ..Default::default()
    }));
    all
}

fn check_command(cmd: &str, environment: &BTreeMap<String, String>) -> pb::CommandInfo {
    pb::CommandInfo {
        shell: Some(true),
        value: Some(cmd.to_owned()),
        environment: variables(environment).into(),
        ..Default::default()
    }
}

fn health_check(check: &HealthCheck, environment: &BTreeMap<String, String>) -> pb::HealthCheck {
    pb::HealthCheck {
        r#type: Some(pb::health_check::Type::COMMAND),
        delay_seconds: Some(check.delay_secs as f64),
        interval_seconds: Some(check.interval_secs as f64),
        timeout_seconds: Some(check.timeout_secs as f64),
        consecutive_failures: Some(check.max_consecutive_failures),
        grace_period_seconds: Some(check.grace_period_secs as f64),
        command: check_command(&check.cmd, environment).into(),
        ..Default::default()
    }
}

fn readiness_check(check: &ReadinessCheck, environment: &BTreeMap<String, String>) -> pb::CheckInfo {
    let command = check_command(&check.cmd, environment).into();
    pb::CheckInfo {
        r#type: Some(pb::check_info::Type::COMMAND),
        delay_seconds: Some(check.delay_secs as f64),
        interval_seconds: Some(check.interval_secs as f64),
        timeout_seconds: Some(check.timeout_secs as f64),
        command: pb::check_info::Command { command, ..Default::default() }.into(),
        ..Default::default()
    }
}

fn kill_policy(task: &TaskSpec) -> pb::KillPolicy {
    let nanoseconds = i64::try_from(task.kill_grace_period_secs.saturating_mul(1_000_000_000));
    let nanoseconds = nanoseconds.unwrap_or(i64::MAX);
    let grace_period = pb::DurationInfo { nanoseconds, ..Default::default() };
    pb::KillPolicy { grace_period: grace_period.into(), ..Default::default() }
}

fn limits(limits: &Limits) -> BTreeMap<String, pb::value::Scalar> {
    let bound = |limit: Limit| match limit {
        Limit::Unlimited => f64::INFINITY,
        Limit::Amount(amount) => amount,
    };
    let both = [("cpus", limits.cpus), ("mem", limits.memory_mb)];
    let entry = |(name, limit): (&str, Option<Limit>)| {
        let value = bound(limit?);
        Some((name.to_owned(), pb::value::Scalar { value, ..Default::default() }))
    };
    both.into_iter().filter_map(entry).collect()
}

fn visibility(visibility: Visibility) -> pb::discovery_info::Visibility {
    match visibility {
        Visibility::Framework => pb::discovery_info::Visibility::FRAMEWORK,
        Visibility::Cluster => pb::discovery_info::Visibility::CLUSTER,
        Visibility::External => pb::discovery_info::Visibility::EXTERNAL,
    }
}

fn discovery(context: &Context<'_>, task: &TaskSpec, set: Option<&ResourceSet>) -> Option<pb::DiscoveryInfo> {
    let ports = set.map(|set| set.ports.as_slice()).unwrap_or_default();
    if task.discovery.is_none() && ports.is_empty() {
        return None;
    }
    let prefix = task.discovery.as_ref().and_then(|own| own.prefix.as_ref());
    let name = match prefix {
        Some(prefix) => format!("{prefix}-{}", context.instance.index),
        None => context.instance.task_name(&task.name),
    };
    let seen = task.discovery.as_ref().map_or(Visibility::Cluster, |own| own.visibility);
    let ports: Vec<pb::Port> = ports.iter().filter_map(|port| discovered_port(context, task, port)).collect();
    Some(pb::DiscoveryInfo {
        visibility: visibility(seen),
        name: Some(name),
        ports: pb::Ports { ports, ..Default::default() }.into(),
        ..Default::default()
    })
}

fn discovered_port(context: &Context<'_>, task: &TaskSpec, port: &Port) -> Option<pb::Port> {
    let number = u32::try_from(port_number(context, task, port)?).ok()?;
    let seen = if port.advertise { Visibility::External } else { Visibility::Cluster };
    let mut own = Vec::new();
    let networks = &context.pod.networks;
    let vip = port.vip.as_ref().map(|vip| {
        // Upstream draws a UUID for each key; the names of task and port are as unique and stay the same.
        let key = format!("VIP_{}_{}", context.instance.task_name(&task.name), port.name);
        (key, format!("{}:{}", vip.prefix, vip.port))
    });
    if let Some((key, value)) = &vip {
        own.push((key.as_str(), value.as_str()));
        if let Some(network) = networks.first() {
            own.push(("network-scope", if network.name == BRIDGE_NETWORK { "host" } else { "container" }));
        }
    }
    Some(pb::Port {
        number,
        name: Some(port.name.clone()),
        protocol: Some("tcp".to_owned()),
        visibility: Some(visibility(seen)),
        labels: Some(labels(own)).filter(|labels| !labels.labels.is_empty()).into(),
        ..Default::default()
    })
}
