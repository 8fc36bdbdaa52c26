//! A spec in the JSON form of `/v1/configurations`.

use serde_json::{Value, json};

use super::{
    ExternalVolume, Goal, IpcMode, Limit, Limits, PodSpec, Port, ResourceSet, Seccomp, ServiceSpec, TaskSpec,
    Visibility, Volume, VolumeKind, VolumeMode,
};

impl ServiceSpec {
    /// With `null` for everything optional that is absent.
    pub fn served(&self) -> Value {
        json!({
            "name": self.name,
            "principal": self.principal,
            "user": self.user,
            "goal": "RUNNING",
            "web-url": self.web_url,
            "zookeeper": self.zookeeper,
            "replacement-failure-policy": self.replacement.map(|policy| json!({
                "permanent-failure-timeout-secs": policy.permanent_failure_timeout_secs,
                "min-replace-delay-Secs": policy.min_replace_delay_secs,
            })),
            "pod-specs": self.pods.iter().map(|pod| self.pod_json(pod)).collect::<Vec<_>>(),
        })
    }

    fn pod_json(&self, pod: &PodSpec) -> Value {
        let profile = match &pod.seccomp {
            Seccomp::Profile(name) => Some(name),
            Seccomp::Default | Seccomp::Unconfined => None,
        };
        let rules: Vec<String> = pod.placement.iter().map(ToString::to_string).collect();
        json!({
            "type": pod.name,
            "user": self.user,
            "count": pod.count,
            "allow-decommission": pod.allow_decommission,
            "image": pod.image,
            "networks": pod.networks.iter().map(|own| json!({
                "network-name": own.name,
                "port-mappings": own.port_mappings.iter().map(|(host, container)| (host.to_string(), json!(container))).collect::<serde_json::Map<_, _>>(),
                "network-labels": pairs(&own.labels),
            })).collect::<Vec<_>>(),
            "rlimits": pod.rlimits.iter().map(|own| json!({
                "name": own.name,
                "soft": own.values.map(|(soft, _)| soft),
                "hard": own.values.map(|(_, hard)| hard),
            })).collect::<Vec<_>>(),
            "uris": pod.uris,
            "task-specs": pod.tasks.iter().map(|task| self.task_json(pod, task)).collect::<Vec<_>>(),
            "placement-rule": (!rules.is_empty()).then_some(rules),
            "volumes": pod.volumes.iter().map(|own| self.volume_json(own)).collect::<Vec<_>>(),
            "pre-reserved-role": pod.pre_reserved_role,
            "secrets": pod.secrets.iter().map(|own| json!({
                "secret": own.secret, "env-key": own.env_key, "file": own.file,
            })).collect::<Vec<_>>(),
            "share-pid-namespace": pod.share_pid_namespace,
            "host-volumes": pod.host_volumes.iter().map(|own| json!({
                "host-path": own.host_path, "container-path": own.container_path, "mode": mode(own.mode),
            })).collect::<Vec<_>>(),
            "external-volumes": pod.external_volumes.iter().map(external).collect::<Vec<_>>(),
            "seccomp-unconfined": pod.seccomp == Seccomp::Unconfined,
            "seccomp-profile-name": profile,
            "ipc-mode": pod.ipc_mode.map(ipc),
            "shm-size": pod.shm_size_mb,
        })
    }

    fn task_json(&self, pod: &PodSpec, task: &TaskSpec) -> Value {
        json!({
            "name": task.name,
            "goal": match task.goal { Goal::Running => "RUNNING", Goal::Finish => "FINISH", Goal::Once => "ONCE" },
            "essential": task.essential,
            "resource-set": pod.resource_set(&task.resource_set).map(|set| self.set_json(set)),
            "command-spec": {"value": task.cmd, "environment": task.env},
            "task-labels": pairs(&task.labels),
            "health-check-spec": task.health_check.as_ref().map(|own| json!({
                "command": own.cmd,
                "max-consecutive-failures": own.max_consecutive_failures,
                "delay": own.delay_secs,
                "interval": own.interval_secs,
                "timeout": own.timeout_secs,
                "grace-period": own.grace_period_secs,
                "gracePeriod": own.grace_period_secs,
            })),
            "readiness-check-spec": task.readiness_check.as_ref().map(|own| json!({
                "command": own.cmd,
                "delay": own.delay_secs,
                "interval": own.interval_secs,
                "timeout": own.timeout_secs,
            })),
            "config-files": task.configs.iter().map(|own| json!({
                "name": own.name, "relative-path": own.dest, "template-content": own.content,
            })).collect::<Vec<_>>(),
            "discovery-spec": task.discovery.as_ref().map(|own| json!({
                "prefix": own.prefix, "visibility": visibility(own.visibility),
            })),
            "kill-grace-period": task.kill_grace_period_secs,
            "transport-encryption": [],
            "ipc-mode": task.ipc_mode.map(ipc),
            "shm-size": task.shm_size_mb,
        })
    }

    fn set_json(&self, set: &ResourceSet) -> Value {
        let scalar = |name: &str, amount: Option<f64>| amount.map(|amount| self.scalar_json(name, amount));
        let scalars = [
            scalar("cpus", set.cpus),
            scalar("gpus", set.gpus),
            scalar("mem", set.memory_mb.map(|memory| memory as f64)),
        ];
        let mut resources: Vec<Value> = scalars.into_iter().flatten().collect();
        resources.extend(set.ports.iter().map(|port| self.port_json(port)));
        json!({
            "id": set.id,
            "resource-specifications": resources,
            "volume-specifications": set.volumes.iter().map(|own| self.volume_json(own)).collect::<Vec<_>>(),
            "principal": self.principal,
            "resource-limits": limits(&set.limits),
        })
    }

    fn scalar_json(&self, name: &str, amount: f64) -> Value {
        json!({
            "@type": "DefaultResourceSpec",
            "name": name,
            "value": {"type": "SCALAR", "scalar": {"value": amount}},
            "principal": self.principal,
        })
    }

    fn port_json(&self, port: &Port) -> Value {
        let seen = if port.advertise { Visibility::External } else { Visibility::Cluster };
        let mut own = json!({
            "@type": if port.vip.is_some() { "NamedVIPSpec" } else { "PortSpec" },
            "name": "ports",
            "value": {"type": "RANGES", "ranges": {"range": [{"begin": port.port, "end": port.port}]}},
            "principal": self.principal,
            "env-key": port.env_key,
            "port-name": port.name,
            "visibility": visibility(seen),
            "ranges": port.ranges.iter().map(|(begin, end)| json!({"begin": begin, "end": end})).collect::<Vec<_>>(),
        });
        if let Some(vip) = &port.vip {
            own["protocol"] = json!("tcp");
            own["vip-name"] = json!(vip.prefix);
            own["vip-port"] = json!(vip.port);
        }
        own
    }

    fn volume_json(&self, volume: &Volume) -> Value {
        let (kind, profiles) = match &volume.kind {
            VolumeKind::Root => ("ROOT", &Vec::new()),
            VolumeKind::Mount { profiles } => ("MOUNT", profiles),
        };
        json!({
            "@type": "DefaultVolumeSpec",
            "type": kind,
            "container-path": volume.path,
            "profiles": profiles,
            "name": "disk",
            "value": {"type": "SCALAR", "scalar": {"value": volume.size_mb as f64}},
            "principal": self.principal,
        })
    }
}

fn pairs(pairs: &[(String, String)]) -> Value {
    Value::Object(pairs.iter().map(|(key, value)| (key.clone(), json!(value))).collect())
}

fn limits(limits: &Limits) -> Value {
    let bound = |limit: Limit| match limit {
        Limit::Unlimited => "unlimited".to_owned(),
        Limit::Amount(amount) => amount.to_string(),
    };
    json!({"cpus": limits.cpus.map(bound), "memory": limits.memory_mb.map(bound)})
}

fn mode(mode: VolumeMode) -> &'static str {
    match mode {
        VolumeMode::ReadWrite => "RW",
        VolumeMode::ReadOnly => "RO",
    }
}

fn ipc(mode: IpcMode) -> &'static str {
    match mode {
        IpcMode::Private => "PRIVATE",
        IpcMode::ShareParent => "SHARE_PARENT",
    }
}

fn visibility(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Framework => "FRAMEWORK",
        Visibility::Cluster => "CLUSTER",
        Visibility::External => "EXTERNAL",
    }
}

fn external(volume: &ExternalVolume) -> Value {
    json!({
        "type": "DOCKER",
        "container-path": volume.container_path,
        "driver-name": volume.plugin,
        "driver-options": volume.driver_options(),
        "volume-name": volume.volume_name,
        "volume-mode": mode(volume.mode),
        "size": volume.size_mb,
        "volume-sharing": match volume.sharing {
            super::Sharing::PodExclusive => "POD_EXCLUSIVE",
            super::Sharing::PodShared => "POD_SHARED",
        },
    })
}
