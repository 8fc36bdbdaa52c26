//! Flags of v1 programs that Tepui knows and cannot honour, with the reason an operator is told.
//!
//! Silently ignoring a flag that changes what a cluster does would be a lie; these are errors on the command line.
//! The complete list of flags is in docs/compat.md.

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
        ],
        "there are no loadable modules; what they were used for is built in or a framework",
    ),
    (
        &["zk", "zk_session_timeout"],
        "ZooKeeper is not used; several masters share a registry in etcd: --registry=etcd://host:2379/prefix",
    ),
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
    (
        &["role_sorter", "user_sorter", "framework_sorter"],
        "the sorter is weighted dominant resource fairness",
    ),
];

const AGENT: Table = &[
    (&["docker_mesos_image"], "the docker executor is part of this binary and runs beside its container"),
    (
        &["appc_store_dir", "appc_simple_discovery_uri_prefix"],
        "images are those of Docker and OCI: --image_providers=docker",
    ),
    (
        &["resource_provider_config_dir", "csi_plugin_config_dir", "disk_profile_adaptor"],
        "resource providers and CSI plugins are not there yet",
    ),
    (
        &["network_cni_config_dir", "network_cni_plugins_dir"],
        "CNI networks are not there yet; tasks use the host's",
    ),
    (
        &["cgroups_hierarchy", "agent_subsystems"],
        "controllers are used where they are mounted, and the agent itself stays where it was started",
    ),
    (
        &["cgroups_destroy_timeout"],
        "a container is destroyed until it is gone; one that takes long is in the log",
    ),
];
