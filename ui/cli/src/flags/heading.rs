//! The layout of the help of the two programs: groups of flags and names of values.
//!
//! A flag that is not listed here is shown under "Options".

use clap::{Arg, Command};

type Groups = &'static [(&'static str, &'static [&'static str])];

const AGENT: Groups = &[
    (
        "Network",
        &[
            "master",
            "ip",
            "ip_discovery_command",
            "port",
            "advertise_ip",
            "advertise_port",
            "hostname",
            "hostname_lookup",
            "domain",
        ],
    ),
    ("Directories", &["work_dir", "runtime_dir", "fetcher_cache_dir", "frameworks_home", "launcher_dir"]),
    ("Resources", &["resources", "attributes", "default_role", "agent_features"]),
    (
        "Containers",
        &[
            "launcher",
            "isolation",
            "cgroups_root",
            "cgroups_enable_cfs",
            "cgroups_limit_swap",
            "cgroups_cpu_enable_pids_and_tids_count",
            "revocable_cpu_low_priority",
            "sandbox_directory",
            "effective_capabilities",
            "bounding_capabilities",
            "allowed_devices",
            "seccomp_config_dir",
            "seccomp_profile_name",
            "secret_dir",
            "host_path_volume_force_creation",
            "default_container_shm_size",
            "disallow_sharing_agent_pid_namespace",
            "disallow_sharing_agent_ipc_namespace",
            "container_disk_watch_interval",
            "enforce_container_disk_quota",
            "container_ports_watch_interval",
            "enforce_container_ports",
            "container_ports_isolated_range",
            "check_agent_port_range_only",
            "container_logger",
            "max_stdout_size",
            "max_stderr_size",
            "logrotate_stdout_options",
            "logrotate_stderr_options",
            "environment_variable_prefix",
            "http_heartbeat_interval",
            "containerizers",
            "docker",
            "docker_socket",
            "docker_remove_delay",
            "docker_stop_timeout",
            "docker_kill_orphans",
            "switch_user",
            "executor_environment_variables",
            "default_container_info",
            "fetcher_cache_size",
            "fetcher_stall_timeout",
            "fetcher_max_size",
            "http_command_executor",
        ],
    ),
    (
        "Images and volumes",
        &[
            "image_providers",
            "docker_registry",
            "docker_config",
            "docker_store_dir",
            "image_provisioner_backend",
            "image_gc_config",
            "docker_volume_checkpoint_dir",
            "docker_volume_chown",
            "docker_volume_plugin_dirs",
        ],
    ),
    (
        "Restarts and time limits",
        &[
            "recover",
            "strict",
            "reconfiguration_policy",
            "recovery_timeout",
            "executor_registration_timeout",
            "executor_reregistration_timeout",
            "executor_shutdown_grace_period",
            "executor_kill_margin",
            "registration_backoff_factor",
        ],
    ),
    (
        "Oversubscription",
        &[
            "slack_eviction_grace",
            "resource_estimator",
            "fixed_estimator_resources",
            "usage_estimator_memory",
            "usage_estimator_watch",
            "oversubscribed_resources_interval",
            "qos_controller",
            "qos_correction_interval_min",
            "load_threshold_5min",
            "load_threshold_15min",
            "pressure_threshold_cpu",
            "pressure_threshold_memory",
            "best_effort_tasks",
            "task_group_limits",
            "eviction_memory_available",
            "eviction_pressure",
            "eviction_disk_available",
        ],
    ),
    (
        "Clean-up",
        &[
            "gc_delay",
            "gc_disk_headroom",
            "disk_watch_interval",
            "disk_reserve",
            "disk_pressure_available",
            "max_completed_executors_per_framework",
        ],
    ),
    (
        "Security",
        &[
            "credential",
            "http_credentials",
            "authenticate_http_readonly",
            "authenticate_http_readwrite",
            "authenticate_http_executors",
            "jwt_secret_key",
            "http_authenticators",
            "acls",
            "firewall_rules",
            "allowed_hosts",
            "jsonp",
        ],
    ),
    TLS,
    LOGGING,
];

const MASTER: Groups = &[
    (
        "Network",
        &[
            "ip",
            "ip_discovery_command",
            "port",
            "advertise_ip",
            "advertise_port",
            "hostname",
            "hostname_lookup",
            "domain",
            "cluster",
        ],
    ),
    (
        "Registry",
        &[
            "work_dir",
            "registry",
            "disk_reserve",
            "disk_pressure_available",
            "leader_lease",
            "registry_gc_interval",
            "registry_max_agent_age",
            "registry_max_agent_count",
        ],
    ),
    (
        "Roles and offers",
        &[
            "roles",
            "weights",
            "offer_timeout",
            "allocation_interval",
            "min_allocatable_resources",
            "fair_sharing_excluded_resource_names",
            "filter_gpu_resources",
            "whitelist",
            "best_effort_tasks",
            "task_group_limits",
            "role_sorter",
            "framework_sorter",
            "allocator_agent_recovery_factor",
            "allocator_recovery_timeout",
            "allocation_slack",
            "allocation_slack_opt_out",
            "root_submissions",
        ],
    ),
    (
        "Agents",
        &[
            "agent_ping_timeout",
            "max_agent_ping_timeouts",
            "agent_reregister_timeout",
            "agent_removal_rate_limit",
            "recovery_agent_removal_limit",
            "require_agent_domain",
        ],
    ),
    (
        "Security",
        &[
            "credentials",
            "authenticate_http_readonly",
            "authenticate_http_readwrite",
            "authenticate_http_frameworks",
            "authenticate_agents",
            "http_authenticators",
            "http_framework_authenticators",
            "acls",
            "rate_limits",
            "firewall_rules",
            "allowed_hosts",
            "jsonp",
        ],
    ),
    (
        "Retention",
        &[
            "max_completed_frameworks",
            "max_completed_tasks_per_framework",
            "max_unreachable_tasks_per_framework",
            "max_operator_event_stream_subscribers",
            "max_frameworks",
            "max_framework_info_size",
            "max_task_info_size",
            "max_task_bytes_per_framework",
            "max_operation_size",
            "max_agent_info_size",
            "max_role_config_size",
            "max_maintenance_schedule_size",
            "publish_per_framework_metrics",
        ],
    ),
    TLS,
    LOGGING,
];

const TLS: (&str, &[&str]) = (
    "TLS",
    &[
        "tls_cert",
        "tls_key",
        "tls_ca",
        "tls_verify_clients",
        "allow_insecure",
        "etcd_ca",
        "etcd_cert",
        "etcd_key",
    ],
);

const LOGGING: (&str, &[&str]) =
    ("Logging", &["logging_level", "log_format", "log_dir", "external_log_file", "audit_log", "quiet"]);

/// Names of values by the suffix of the flag's name; the first match is used.
const VALUES: &[(&str, &str)] = &[
    ("authenticate_http_readonly", "BOOL"),
    ("authenticate_http_readwrite", "BOOL"),
    ("authenticate_http_frameworks", "BOOL"),
    ("authenticate_http_executors", "BOOL"),
    ("authenticate_agents", "BOOL"),
    ("authenticators", "LIST"),
    ("credentials", "FILE"),
    ("credential", "FILE"),
    ("jwt_secret_key", "FILE"),
    ("tls_cert", "FILE"),
    ("tls_key", "FILE"),
    ("tls_ca", "FILE"),
    ("tls_verify_clients", "BOOL"),
    ("allow_insecure", "BOOL"),
    ("acls", "JSON|FILE"),
    ("rate_limits", "JSON|FILE"),
    ("firewall_rules", "JSON|FILE"),
    ("allowed_hosts", "LIST"),
    ("jsonp", "BOOL"),
    ("require_agent_domain", "BOOL"),
    ("ip_discovery_command", "COMMAND"),
    ("whitelist", "FILE"),
    ("hostname_lookup", "BOOL"),
    ("switch_user", "BOOL"),
    ("strict", "BOOL"),
    ("quiet", "BOOL"),
    ("audit_log", "FILE"),
    ("max_task_bytes_per_framework", "BYTES"),
    ("filter_gpu_resources", "BOOL"),
    ("best_effort_tasks", "BOOL"),
    ("task_group_limits", "BOOL"),
    ("allocation_slack", "BOOL"),
    ("_opt_out", "LIST"),
    ("root_submissions", "BOOL"),
    ("http_command_executor", "BOOL"),
    ("usage_estimator_memory", "BOOL"),
    ("usage_estimator_watch", "DURATION"),
    ("slack_eviction_grace", "DURATION"),
    ("executor_kill_margin", "DURATION"),
    ("_interval_min", "DURATION"),
    ("load_threshold_5min", "LOAD"),
    ("load_threshold_15min", "LOAD"),
    ("pressure_threshold_cpu", "PERCENT"),
    ("pressure_threshold_memory", "PERCENT"),
    ("eviction_pressure", "PERCENT"),
    ("eviction_memory_available", "BYTES"),
    ("eviction_disk_available", "BYTES"),
    ("disk_reserve", "BYTES"),
    ("disk_pressure_available", "BYTES"),
    ("master", "HOST:PORT"),
    ("ip", "IP"),
    ("port", "PORT"),
    ("hostname", "NAME"),
    ("cluster", "NAME"),
    ("domain", "JSON"),
    ("variables", "JSON"),
    ("_dir", "DIR"),
    ("sandbox_directory", "DIR"),
    ("_capabilities", "JSON"),
    ("_devices", "JSON"),
    ("_profile_name", "NAME"),
    ("_force_creation", "DIR:..."),
    ("_isolated_range", "[FROM-TO]"),
    ("_ipc_namespace", "BOOL"),
    ("_pid_namespace", "BOOL"),
    ("enforce_container_disk_quota", "BOOL"),
    ("enforce_container_ports", "BOOL"),
    ("_range_only", "BOOL"),
    ("_tids_count", "BOOL"),
    ("frameworks_home", "DIR"),
    ("rate_limit", "N/DURATION"),
    ("max_agent_ping_timeouts", "N"),
    ("_count", "N"),
    ("_age", "DURATION"),
    ("_lease", "DURATION"),
    ("_timeout", "DURATION"),
    ("_interval", "DURATION"),
    ("_period", "DURATION"),
    ("recovery_factor", "PART"),
    ("_sorter", "SORTER"),
    ("_factor", "DURATION"),
    ("_delay", "DURATION"),
    ("_headroom", "PART"),
    ("_size", "BYTES"),
    ("weights", "ROLE=WEIGHT,..."),
    ("roles", "LIST"),
    ("names", "LIST"),
    ("isolation", "LIST"),
    ("containerizers", "LIST"),
    ("default_role", "ROLE"),
    ("_frameworks", "N"),
    ("_per_framework", "N"),
    ("_subscribers", "N"),
    ("_level", "LEVEL"),
    ("_resources", "RESOURCES"),
];

const ENVIRONMENT: &str = "Flags are written with dashes or underscores, or set in the environment as TEPUI_<FLAG> or MESOS_<FLAG>; \
     --no-<flag> is --<flag>=false; a value file:///path is replaced by the content of that file.";

/// The tree with the flags of both programs in groups.
pub fn grouped(command: Command) -> Command {
    let of =
        |program: Command, groups| program.after_help(ENVIRONMENT).mut_args(|flag| laid_out(flag, groups));
    command
        .mut_subcommand("agent", |agent| of(agent, AGENT))
        .mut_subcommand("master", |master| of(master, MASTER))
}

fn laid_out(flag: Arg, groups: Groups) -> Arg {
    let name = flag.get_id().as_str().to_string();
    let value = VALUES.iter().find(|(end, _)| name.ends_with(end)).map(|(_, value)| *value);
    let flag = match value {
        Some(value) => flag.value_name(value),
        None => flag,
    };
    let places = groups.iter().flat_map(|(heading, flags)| flags.iter().map(move |flag| (*heading, *flag)));
    match places.enumerate().find(|(_, (_, flag))| *flag == name) {
        Some((place, (heading, _))) => flag.help_heading(heading).display_order(place),
        None => flag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grouped_flag_exists() {
        let tree = crate::tree();
        for (program, groups) in [("agent", AGENT), ("master", MASTER)] {
            let program = tree.find_subcommand(program).unwrap();
            for flag in groups.iter().flat_map(|(_, flags)| *flags) {
                assert!(program.get_arguments().any(|known| known.get_id() == *flag), "{flag}");
            }
        }
    }
}
