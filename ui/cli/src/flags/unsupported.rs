//! Flags of v1 programs that Tepui recognizes and does not support, with the reason shown to the operator.
//!
//! They are errors on the command line: a flag is never ignored silently.
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
    of_program.or_else(|| BOTH.iter().find(|(flags, _)| flags.contains(&name))).map(|(_, reason)| *reason)
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
        ],
        "loadable modules are not supported; their functions are built in or provided by frameworks",
    ),
    (
        &["secret_resolver"],
        "loadable modules are not supported; `--secret_dir` resolves secrets by reference",
    ),
    (
        &["zk", "zk_session_timeout"],
        "ZooKeeper is not supported; use a registry in etcd for several masters: --registry=etcd://host:2379/prefix",
    ),
    (&["initialize_driver_logging"], "v0 drivers are not supported"),
    (&["logbufsecs"], "not needed: log lines are written within 20 ms"),
    (&["memory_profiling"], "use an external profiler such as heaptrack"),
];

const MASTER: Table = &[
    (
        &["quorum", "log_auto_initialize"],
        "the replicated log is not used; the registry is a file in --work_dir or in etcd",
    ),
    (
        &["authenticators", "authentication_v0_timeout"],
        "v0 drivers are not supported; frameworks and agents authenticate over HTTP with --credentials",
    ),
    (&["user_sorter"], "users are not sorted; use --role_sorter and --framework_sorter"),
    (
        &["max_executors_per_agent"],
        "applies only to the isolator network/port_mapping, which is not supported",
    ),
    (
        &["offer_constraints_re2_max_mem", "offer_constraints_re2_max_program_size"],
        "RE2 is not used; the limit of regular expressions is fixed",
    ),
    (&["registry_fetch_timeout"], "reading the registry does not time out"),
    (
        &["registry_store_timeout"],
        "writing the registry does not time out; nothing is visible before it is durable",
    ),
    (&["registry_strict"], "agents missing in the registry may re-register, as in v1 without this flag"),
    (&["webui_dir"], "the web pages are part of the binary"),
];

const AGENT: Table = &[
    (&["agent_subsystems"], "the agent is not moved into cgroups"),
    (
        &["appc_store_dir", "appc_simple_discovery_uri_prefix"],
        "appc images are not supported; use Docker or OCI images: --image_providers=docker",
    ),
    (
        &[
            "authenticatee",
            "authentication_backoff_factor",
            "authentication_timeout_max",
            "authentication_timeout_min",
        ],
        "the agent sends its --credential with the first request; there is no negotiation",
    ),
    (&["cgroups_destroy_timeout"], "destroying a container does not time out; slow destructions are logged"),
    (&["cgroups_hierarchy"], "controllers are used where the system mounts them"),
    (
        &["cgroups_net_cls_primary_handle", "cgroups_net_cls_secondary_handles"],
        "the isolator cgroups/net_cls is not supported",
    ),
    (&["default_container_dns"], "use the task's Docker parameters dns, dns-search and dns-opt"),
    (&["docker_ignore_runtime"], "omit docker/runtime from --isolation instead"),
    (
        &["gc_non_executor_container_sandboxes"],
        "sandboxes of nested containers are removed with that of their executor, or by REMOVE_CONTAINER",
    ),
    (&["docker_mesos_image"], "the Docker executor is part of this binary and runs outside of the container"),
    (
        &["domain_socket_location", "http_executor_domain_sockets"],
        "executors reach their agent over TCP only",
    ),
    (
        &["executor_reregistration_retry_interval"],
        "v0 executors are not supported; v1 executors resubscribe by themselves",
    ),
    (&["hadoop_home"], "Hadoop is not supported; the fetcher supports file, http and https"),
    (&["ip6", "ip6_discovery_command"], "an agent has one address; --ip accepts IPv4 and IPv6"),
    (
        &[
            "network_cni_config_dir",
            "network_cni_metrics",
            "network_cni_plugins_dir",
            "network_cni_root_dir_persist",
        ],
        "CNI networks are not supported; tasks use the host network",
    ),
    (&["nvidia_gpu_devices"], "the isolator gpu/nvidia is not supported"),
    (&["perf_duration", "perf_events", "perf_interval"], "the isolator cgroups/perf_event is not supported"),
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
        "the isolator network/port_mapping is not supported",
    ),
    (
        &["resource_provider_config_dir", "csi_plugin_config_dir", "disk_profile_adaptor"],
        "resource providers and CSI plugins are not supported",
    ),
    (
        &["systemd_enable_support", "systemd_runtime_directory"],
        "systemd slices are not used; set KillMode=process and Delegate=true in the agent's unit",
    ),
    (&["volume_gid_range"], "volumes belong to the user of the task; gids are not allocated"),
    (
        &["xfs_kill_containers", "xfs_project_range", "xfs_quota_headroom"],
        "the isolator disk/xfs is not supported; disk/du limits sandboxes and volumes",
    ),
];
