//! Flags of v1 programs that Tepui knows and cannot honour, with the reason an operator is told.
//!
//! Silently ignoring a flag that changes what a cluster does would be a lie; these are errors on the command line.
//! The complete list of flags is in docs/compat.md.

/// All of them that the program `command` has in v1.
pub fn names(command: &str) -> impl Iterator<Item = &'static str> {
    let tables = match command {
        "master" => [MASTER, BOTH],
        "agent" => [AGENT, BOTH],
        _ => [&[] as Table, &[]],
    };
    tables.into_iter().flatten().flat_map(|(flags, _)| flags.iter().copied())
}

/// Why `--name` of the program `command` cannot be used; none if it can, or is not known.
pub fn reason(command: &str, name: &str) -> Option<&'static str> {
    let table = match command {
        "master" => MASTER,
        "agent" => AGENT,
        _ => return None,
    };
    let of_program = table.iter().find(|(flags, _)| flags.contains(&name));
    of_program.or_else(|| BOTH.iter().find(|(flags, _)| flags.contains(&name))).map(|(_, why)| *why)
}

type Table = &'static [(&'static [&'static str], &'static str)];

const BOTH: Table = &[
    (
        &[
            "modules",
            "modules_dir",
            "hooks",
            "master_detector",
            "master_contender",
            "allocator",
            "authorizers",
            "authorizer",
            "secret_resolver",
        ],
        "there are no loadable modules; what they were used for is built in or a framework",
    ),
    (
        &["zk", "zk_session_timeout"],
        "ZooKeeper is not used; several masters share a registry in etcd: --registry=etcd://host:2379/prefix",
    ),
    (&["initialize_driver_logging"], "there are no drivers"),
    (&["logbufsecs"], "lines are written within 10 ms"),
    (&["memory_profiling"], "memory is profiled from outside, as with heaptrack"),
];

const MASTER: Table = &[
    (
        &["quorum", "log_auto_initialize"],
        "there is no replicated log; the registry is one file under --work_dir, or in etcd",
    ),
    (
        &["authenticators", "authentication_v0_timeout"],
        "old drivers do not exist here; frameworks and agents authenticate by HTTP, with --credentials",
    ),
    (&["user_sorter"], "users have no order of their own; --role_sorter and --framework_sorter have"),
    (&["max_executors_per_agent"], "v1 has it in builds with network/port_mapping only"),
    (
        &["offer_constraints_re2_max_mem", "offer_constraints_re2_max_program_size"],
        "regular expressions are not those of RE2; their limit is fixed",
    ),
    (&["registry_fetch_timeout"], "the registry is read from its file, or from etcd until that answers"),
    (
        &["registry_store_timeout"],
        "a store that does not answer is waited for; nothing becomes visible meanwhile",
    ),
    (
        &["registry_strict"],
        "agents that the registry has forgotten are taken back, as in v1 without the flag",
    ),
    (&["webui_dir"], "the pages are part of the binary"),
];

const AGENT: Table = &[
    (&["agent_subsystems"], "the agent itself stays where it was started"),
    (
        &["appc_store_dir", "appc_simple_discovery_uri_prefix"],
        "images are those of Docker and OCI: --image_providers=docker",
    ),
    (
        &[
            "authenticatee",
            "authentication_backoff_factor",
            "authentication_timeout_max",
            "authentication_timeout_min",
        ],
        "an agent shows its --credential with its first request; there is nothing to negotiate",
    ),
    (
        &["cgroups_destroy_timeout"],
        "a container is destroyed until it is gone; one that takes long is in the log",
    ),
    (&["cgroups_hierarchy"], "controllers are used where they are mounted"),
    (
        &["cgroups_net_cls_primary_handle", "cgroups_net_cls_secondary_handles"],
        "there is no isolator cgroups/net_cls",
    ),
    (
        &["default_container_dns"],
        "name servers are named by the parameters dns, dns-search and dns-opt of a task",
    ),
    (&["docker_ignore_runtime"], "leave docker/runtime out of --isolation instead"),
    (
        &["gc_non_executor_container_sandboxes"],
        "sandboxes of nested containers go with that of their executor, or by REMOVE_CONTAINER",
    ),
    (&["docker_mesos_image"], "the docker executor is part of this binary and runs beside its container"),
    (
        &["domain_socket_location", "http_executor_domain_sockets"],
        "executors reach their agent over TCP only",
    ),
    (
        &["executor_reregistration_retry_interval"],
        "executors of old drivers do not exist here; the others come back by themselves",
    ),
    (&["hadoop_home"], "the fetcher does not use Hadoop: file, http and https"),
    (&["ip6", "ip6_discovery_command"], "an agent has one address; --ip takes one of either version"),
    (
        &[
            "network_cni_config_dir",
            "network_cni_metrics",
            "network_cni_plugins_dir",
            "network_cni_root_dir_persist",
        ],
        "CNI networks are not there yet; tasks use the host's",
    ),
    (&["nvidia_gpu_devices"], "there is no isolator gpu/nvidia"),
    (&["perf_duration", "perf_events", "perf_interval"], "there is no isolator cgroups/perf_event"),
    (
        &[
            "egress_burst",
            "egress_ceil_limit",
            "egress_flow_classifier_parent",
            "egress_rate_limit_per_container",
            "egress_rate_per_cpu",
            "egress_unique_flow_per_container",
            "ephemeral_ports_per_container",
            "eth0_name",
            "ingress_burst",
            "ingress_ceil_limit",
            "ingress_isolate_existing_containers",
            "ingress_rate_limit_per_container",
            "ingress_rate_per_cpu",
            "lo_name",
            "maximum_egress_rate_limit",
            "maximum_ingress_rate_limit",
            "minimum_egress_rate_limit",
            "minimum_ingress_rate_limit",
            "network_enable_rate_statistics",
            "network_enable_snmp_statistics",
            "network_enable_socket_statistics_details",
            "network_enable_socket_statistics_summary",
            "network_link_speed",
            "network_rate_statistics_interval",
            "network_rate_statistics_window",
        ],
        "there is no isolator network/port_mapping",
    ),
    (
        &["resource_provider_config_dir", "csi_plugin_config_dir", "disk_profile_adaptor"],
        "resource providers and CSI plugins are not there yet",
    ),
    (
        &["systemd_enable_support", "systemd_runtime_directory"],
        "nothing is moved into a slice; set KillMode=process and Delegate=true in the agent's unit",
    ),
    (
        &["volume_gid_range"],
        "volumes are given to the user of the task that uses them; groups are not handed out",
    ),
    (
        &["xfs_kill_containers", "xfs_project_range", "xfs_quota_headroom"],
        "there is no isolator disk/xfs; disk/du limits sandboxes and volumes",
    ),
];
