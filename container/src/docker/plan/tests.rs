//! Requests to the engine, as text.

use expect_test::{Expect, expect};
use tepui_proto::json;
use tepui_types::{ContainerId, Volume};

use super::*;

const POLICY: Policy = Policy { enable_cfs: false, limit_swap: false, revocable_cpu_low_priority: true };

/// JSON with single quotes.
fn parsed<M: json::FromJson + Default>(text: &str) -> M {
    json::from_slice(text.replace('\'', "\"").as_bytes()).expect("JSON of the message")
}

fn spec(container: &str, command: &str) -> LaunchSpec {
    LaunchSpec {
        id: ContainerId::root("c"),
        command: parsed(command),
        environment: [("B", "2"), ("A", "1")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        secrets: Default::default(),
        sandbox: String::from("/w/s:1"),
        latest_link: None,
        user: None,
        no_root: false,
        container: Some(parsed(container)),
        resources: vec![
            parsed("{'name':'cpus','type':'SCALAR','scalar':{'value':1}}"),
            parsed("{'name':'mem','type':'SCALAR','scalar':{'value':64}}"),
            parsed("{'name':'ports','type':'RANGES','ranges':{'range':[{'begin':31000,'end':31001}]}}"),
        ],
        limits: BTreeMap::new(),
        volumes: Vec::new(),
        of_task: false,
        holds_tasks: true,
        task: None,
        is_session: false,
    }
}

fn shown(spec: &LaunchSpec) -> String {
    match document(spec, None, ("mesos-c", Path::new("/mnt/s")), &POLICY) {
        Ok(document) => serde_json::to_string_pretty(&document).expect("JSON"),
        Err(why) => format!("error: {why}"),
    }
}

fn check(container: &str, expected: Expect) {
    expected.assert_eq(&shown(&spec(container, "{}")));
}

#[test]
fn command_sets_entrypoint_cmd_and_environment() {
    let of = |command: &str| {
        let document = document(
            &spec("{'type':'DOCKER','docker':{'image':'i'}}", command),
            None,
            ("mesos-c", Path::new("/mnt/s")),
            &POLICY,
        );
        let document = document.expect("a document");
        format!("{} {} {}\n", document["Entrypoint"], document["Cmd"], document["Env"])
    };
    let all = [
        of("{'value':'echo $A'}"),
        of("{'shell':false,'value':'echo','arguments':['a','b']}"),
        of("{'shell':false,'arguments':['a']}"),
        of("{'shell':false}"),
    ];
    expect![[r#"
        ["/bin/sh"] ["-c","echo $A"] ["A=1","B=2","MESOS_CONTAINER_NAME=mesos-c","MESOS_SANDBOX=/mnt/s"]
        null ["echo","a","b"] ["A=1","B=2","MESOS_CONTAINER_NAME=mesos-c","MESOS_SANDBOX=/mnt/s"]
        null ["a"] ["A=1","B=2","MESOS_CONTAINER_NAME=mesos-c","MESOS_SANDBOX=/mnt/s"]
        null null ["A=1","B=2","MESOS_CONTAINER_NAME=mesos-c","MESOS_SANDBOX=/mnt/s"]
    "#]]
    .assert_eq(&all.concat());
    let mut task = spec("{'type':'DOCKER','docker':{'image':'i'}}", "{'value':'tepui'}");
    task.of_task = true;
    expect![[r#"
        {
          "Env": [
            "MESOS_CONTAINER_NAME=mesos-c",
            "MESOS_SANDBOX=/mnt/s"
          ],
          "HostConfig": {
            "Binds": [],
            "CpuShares": 921,
            "Memory": 33554432,
            "MemoryReservation": 33554432,
            "Mounts": [
              {
                "ReadOnly": false,
                "Source": "/w/s:1",
                "Target": "/mnt/s",
                "Type": "bind"
              }
            ],
            "NetworkMode": "host",
            "Privileged": false
          },
          "Image": "i"
        }"#]]
    .assert_eq(&shown(&task));
}

#[test]
fn all_container_fields_are_in_the_create_request() {
    let mut all = spec(
        "{'type':'DOCKER','hostname':'h','network_infos':[{'name':'net1'}],
          'volumes':[
            {'mode':'RO','container_path':'/etc/x','host_path':'/etc'},
            {'mode':'RW','container_path':'/data','host_path':'sub'},
            {'mode':'RW','container_path':'in','source':{'type':'HOST_PATH','host_path':{'path':'/srv'}}},
            {'mode':'RW','container_path':'/v','source':{'type':'DOCKER_VOLUME','docker_volume':
              {'name':'vol','driver':'d','driver_options':{'parameter':[{'key':'size','value':'1'}]}}}}],
          'docker':{'image':'i:1','network':'USER','privileged':true,
            'port_mappings':[{'host_port':31000,'container_port':80,'protocol':'UDP'},{'host_port':31001,'container_port':80}],
            'parameters':[
              {'key':'cap-add','value':'NET_ADMIN'},{'key':'cap-add','value':'SYS_TIME'},{'key':'memory-swap','value':'1g'},
              {'key':'env','value':'C=3'},{'key':'label','value':'a=b'},{'key':'ulimit','value':'nofile=10:20'},
              {'key':'device','value':'/dev/null'},{'key':'cpus','value':'1.5'},{'key':'tmpfs','value':'/t:size=1m'},
              {'key':'ip','value':'10.0.0.7'},{'key':'network-alias','value':'db'},{'key':'init','value':'true'},
              {'key':'log-driver','value':'syslog'},{'key':'log-opt','value':'tag=x'},{'key':'expose','value':'81'},
              {'key':'publish','value':'127.0.0.1:82:82/udp'},{'key':'entrypoint','value':'/e'}]}}",
        "{'value':'true'}",
    );
    all.sandbox = String::from("/w/s");
    all.volumes.push(Volume {
        source: String::from("/w/volumes/p"),
        target: String::from("p"),
        read_only: true,
        shared: false,
    });
    expect![[r#"
        {
          "Cmd": [
            "-c",
            "true"
          ],
          "Entrypoint": [
            "/e"
          ],
          "Env": [
            "A=1",
            "B=2",
            "MESOS_CONTAINER_NAME=mesos-c",
            "MESOS_SANDBOX=/mnt/s",
            "C=3"
          ],
          "ExposedPorts": {
            "80/tcp": {},
            "80/udp": {},
            "81/tcp": {}
          },
          "HostConfig": {
            "Binds": [
              "/etc:/etc/x:ro",
              "/w/s/sub:/data:rw",
              "/srv:/mnt/s/in:rw"
            ],
            "CapAdd": [
              "NET_ADMIN",
              "SYS_TIME"
            ],
            "CpuShares": 1024,
            "Devices": [
              {
                "CgroupPermissions": "rwm",
                "PathInContainer": "/dev/null",
                "PathOnHost": "/dev/null"
              }
            ],
            "Init": true,
            "LogConfig": {
              "Config": {
                "tag": "x"
              },
              "Type": "syslog"
            },
            "Memory": 67108864,
            "MemoryReservation": 67108864,
            "MemorySwap": 1073741824,
            "Mounts": [
              {
                "ReadOnly": false,
                "Source": "vol",
                "Target": "/v",
                "Type": "volume",
                "VolumeOptions": {
                  "DriverConfig": {
                    "Name": "d",
                    "Options": {
                      "size": "1"
                    }
                  }
                }
              },
              {
                "ReadOnly": false,
                "Source": "/w/s",
                "Target": "/mnt/s",
                "Type": "bind"
              },
              {
                "ReadOnly": true,
                "Source": "/w/volumes/p",
                "Target": "/mnt/s/p",
                "Type": "bind"
              }
            ],
            "NanoCpus": 1500000000,
            "NetworkMode": "net1",
            "PortBindings": {
              "80/tcp": [
                {
                  "HostIp": "",
                  "HostPort": "31001"
                }
              ],
              "80/udp": [
                {
                  "HostIp": "",
                  "HostPort": "31000"
                }
              ],
              "82/udp": [
                {
                  "HostIp": "127.0.0.1",
                  "HostPort": "82"
                }
              ]
            },
            "Privileged": true,
            "Tmpfs": {
              "/t": "size=1m"
            },
            "Ulimits": [
              {
                "Hard": 20,
                "Name": "nofile",
                "Soft": 10
              }
            ]
          },
          "Hostname": "h",
          "Image": "i:1",
          "Labels": {
            "a": "b"
          },
          "NetworkingConfig": {
            "EndpointsConfig": {
              "net1": {
                "Aliases": [
                  "db"
                ],
                "IPAMConfig": {
                  "IPv4Address": "10.0.0.7",
                  "IPv6Address": ""
                }
              }
            }
          }
        }"#]]
    .assert_eq(&shown(&all));
}

#[test]
fn network_modes_are_mapped_or_rejected() {
    let of = |network: &str, more: &str| {
        let container = format!("{{'type':'DOCKER'{more},'docker':{{'image':'i'{network}}}}}");
        match document(&spec(&container, "{}"), None, ("mesos-c", Path::new("/mnt/s")), &POLICY) {
            Ok(document) => format!("{}\n", document["HostConfig"]["NetworkMode"]),
            Err(why) => format!("error: {why}\n"),
        }
    };
    let all = [
        of("", ""),
        of(",'network':'BRIDGE'", ""),
        of(",'network':'NONE'", ""),
        of(",'network':'USER'", ""),
        of(",'network':'BRIDGE','parameters':[{'key':'net','value':'other'}]", ""),
        of("", ",'hostname':'h'"),
        of(",'port_mappings':[{'host_port':31000,'container_port':80}]", ""),
        of(",'network':'BRIDGE','port_mappings':[{'host_port':80,'container_port':80}]", ""),
    ];
    expect![[r#"
        "host"
        "bridge"
        "none"
        error: 'container.network_infos' must have one entry with a 'name' if 'container.docker.network' is USER
        "other"
        error: 'container.hostname' cannot be set on the host's network
        error: docker.port_mappings[0]: the network 'host' has no ports of its own
        error: docker.port_mappings[0]: the host's port 80 is not among the task's 'ports'
    "#]].assert_eq(&all.concat());
}

#[test]
fn unsupported_docker_options_are_rejected_with_a_reason() {
    let volume = |volume: &str| format!("{{'type':'DOCKER','docker':{{'image':'i'}},'volumes':[{volume}]}}");
    let parameter = |key: &str, value: &str| {
        format!(
            "{{'type':'DOCKER','docker':{{'image':'i','parameters':[{{'key':'{key}','value':'{value}'}}]}}}}"
        )
    };
    check(
        &volume("{'mode':'RW','container_path':'a','host_path':'b'}"),
        expect!["error: volumes[0] 'a': 'host_path' and 'container_path' are both relative"],
    );
    check(
        &volume("{'mode':'RW','container_path':'/a','host_path':'../b'}"),
        expect!["error: volumes[0] '/a': '../b' does not stay inside the sandbox"],
    );
    check(
        &volume("{'mode':'RW','container_path':'../a','host_path':'/b'}"),
        expect!["error: volumes[0] '../a': '../a' does not stay inside the sandbox"],
    );
    check(
        &volume("{'mode':'RW','container_path':'/a','host_path':'/b:c'}"),
        expect!["error: volumes[0] '/a': a path with a colon cannot be a volume"],
    );
    check(
        &volume("{'mode':'RW','container_path':'/a'}"),
        expect!["error: volumes[0] '/a': 'host_path' or 'source' is missing"],
    );
    check(
        &volume(
            "{'mode':'RW','container_path':'/a','source':{'type':'SANDBOX_PATH','sandbox_path':{'type':'SELF','path':'x'}}}",
        ),
        expect!["error: volumes[0] '/a': a volume of type SANDBOX_PATH is not for DOCKER containers"],
    );
    check(
        &parameter("restart", "always"),
        expect!["error: docker.parameters[0] 'restart': this option of 'docker run' is not supported"],
    );
    check(
        &parameter("memory", "much"),
        expect!["error: docker.parameters[0] 'memory': 'much' is not a size such as 64m"],
    );
    check(&parameter("cpus", "NaN"), expect!["error: docker.parameters[0] 'cpus': 'NaN' is not a number"]);
    check(
        &parameter("privileged", "perhaps"),
        expect!["error: docker.parameters[0] 'privileged': 'perhaps' is neither true nor false"],
    );
    check(
        &parameter("ulimit", "nofile"),
        expect!["error: docker.parameters[0] 'ulimit': 'nofile' is not name=soft[:hard]"],
    );
    check(
        &parameter("publish", "80"),
        expect!["error: docker.parameters[0] 'publish': '80' is not host:container"],
    );
}

#[test]
fn a_framework_without_root_gets_its_own_user_and_no_privileges() {
    let plain = "{'type':'DOCKER','docker':{'image':'i'}}";
    let document_of = |container: &str| {
        document(&spec(container, "{}"), Some((65534, 65533)), ("mesos-c", Path::new("/mnt/s")), &POLICY)
    };
    let document = document_of(plain).expect("a document");
    assert_eq!(document["User"], "65534:65533");
    assert_eq!(document["HostConfig"]["SecurityOpt"], json!(["no-new-privileges"]));
    for more in ["'privileged':true", "'parameters':[{'key':'user','value':'0'}]"] {
        let why = document_of(&plain.replace("'i'", &format!("'i',{more}"))).expect_err(more).to_string();
        assert!(why.contains("may not use root"), "{why}");
    }
}
