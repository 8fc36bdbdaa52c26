//! Deployment of new pods.

use expect_test::expect;

use super::script::replay;

const HELLO: &str = "
name: svc
pods:
  hello:
    count: 2
    tasks:
      server:
        goal: RUNNING
        cmd: serve
        cpus: 1
        memory: 256
        ports:
          http: {port: 0, env-key: PORT_HTTP, advertise: true, vip: {prefix: web, port: 80}}
        volume: {path: data, type: ROOT, size: 1000}
";

#[test]
fn pods_are_reserved_and_launched_one_after_the_other() {
    replay(
        &[("hello", HELLO)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000;ports:[31000-31100]
            > target hello
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:256@#6 ports:[31000-31000]@#7 disk:1000@#8
                CREATE disk[data]:1000@#8
                LAUNCH_GROUP svc__hello-0-server__#9 with cpus:1@#5 mem:256@#6 ports:[31000-31000]@#7 disk[data]:1000@#8 in svc__hello__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/hello-0
            > run hello-0-server
            record +status/hello-0-server
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              hello (serial strategy) (IN_PROGRESS)
                hello-0:[server] (COMPLETE)
                hello-1:[server] (PENDING) no offers yet
            > offers
            record +pod/hello-1 +task/hello-1-server +status/hello-1-server
            accept O2 of A1
                RESERVE cpus:0.1@#11 mem:32@#12 disk:256@#13 cpus:1@#14 mem:256@#15 ports:[31001-31001]@#16 disk:1000@#17
                CREATE disk[data]:1000@#17
                LAUNCH_GROUP svc__hello-1-server__#18 with cpus:1@#14 mem:256@#15 ports:[31001-31001]@#16 disk[data]:1000@#17 in svc__hello__#19 with cpus:0.1@#11 mem:32@#12 disk:256@#13
            record +pod/hello-1
            > run hello-1-server
            record +status/hello-1-server
            record +property/last-completed-update-type
            suppress
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              hello (serial strategy) (COMPLETE)
                hello-0:[server] (COMPLETE)
                hello-1:[server] (COMPLETE)
            > show endpoint http
            {"address":["host-a1:31000","host-a1:31001"],"dns":["hello-0-server.svc.autoip.dcos.thisdcos.directory:31000","hello-1-server.svc.autoip.dcos.thisdcos.directory:31001"],"vip":"web.svc.l4lb.thisdcos.directory:80"}
        "#]],
    );
}

const FULL: &str = "
name: /team/svc
scheduler: {user: nobody}
pods:
  node:
    count: 1
    image: debian:13
    uris: [\"https://example.org/a.tgz\"]
    rlimits:
      RLIMIT_NOFILE: {soft: 1024, hard: 2048}
    host-volumes:
      etc: {host-path: /etc, container-path: host-etc, mode: RO}
    external-volumes:
      data: {type: DOCKER, driver: PWX, size: 2048, container-path: data, driver-options: \"repl=2;fs=ext4\", volume-name: vol}
    volume: {path: shared, type: ROOT, size: 100}
    tasks:
      main:
        goal: RUNNING
        cmd: ./main
        env: {A: b}
        labels: \"team:blue\"
        cpus: 0.5
        memory: 128
        resource-limits: {cpus: unlimited, memory: 512}
        ports:
          api: {port: 8000, env-key: PORT_API}
        configs:
          main.conf: {template: main.mustache, dest: conf/main.conf}
        health-check: {cmd: ./healthy, interval: 1, grace-period: 2, max-consecutive-failures: 3, delay: 4, timeout: 5}
        readiness-check: {cmd: ./ready, interval: 6, delay: 7, timeout: 8}
        kill-grace-period: 9
        discovery: {prefix: disco, visibility: EXTERNAL}
";

#[test]
fn task_infos_contain_every_field_of_the_spec() {
    replay(
        &[("full", &FULL.replace("/team/svc", "svc"))],
        expect![[r##"
            > agent A1 cpus:4;mem:4096;disk:10000;ports:[8000-8001] rack=r1
            > target full
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 disk:100@#5 cpus:0.5@#6 mem:128@#7 ports:[8000-8000]@#8
                CREATE disk[shared]:100@#5
                LAUNCH_GROUP svc__node-0-main__#9 with cpus:0.5@#6 mem:128@#7 ports:[8000-8000]@#8 in svc__node__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4 disk[shared]:100@#5
            record +pod/node-0
            > show task node-0-main
            agent_id: {"value":"A1"}
            check: {"command":{"command":{"env":{[{"A"="b"},{"FRAMEWORK_HOST"="svc.autoip.dcos.thisdcos.directory"},{"FRAMEWORK_NAME"="svc"},{"FRAMEWORK_VIP_HOST"="svc.l4lb.thisdcos.directory"},{"PLACEMENT_REFERENCED_REGION"="false"},{"PLACEMENT_REFERENCED_ZONE"="false"},{"POD_INSTANCE_INDEX"="0"},{"PORT_API"="8000"},{"SCHEDULER_API_HOSTNAME"="api"},{"SCHEDULER_API_PORT"="8080"},{"TASK_NAME"="node-0-main"},{"node-0-main"="true"}]},"shell":true="./ready"}},"delay_seconds":7.0,"interval_seconds":6.0,"timeout_seconds":8.0,"type":"COMMAND"}
            command: {"env":{[{"A"="b"},{"CONFIG_TEMPLATE_MAIN_CONF"="config-templates/main.conf,conf/main.conf"},{"FRAMEWORK_HOST"="svc.autoip.dcos.thisdcos.directory"},{"FRAMEWORK_NAME"="svc"},{"FRAMEWORK_VIP_HOST"="svc.l4lb.thisdcos.directory"},{"PLACEMENT_REFERENCED_REGION"="false"},{"PLACEMENT_REFERENCED_ZONE"="false"},{"POD_INSTANCE_INDEX"="0"},{"PORT_API"="8000"},{"SCHEDULER_API_HOSTNAME"="api"},{"SCHEDULER_API_PORT"="8080"},{"TASK_NAME"="node-0-main"},{"node-0-main"="true"}]},"shell":true,"uris":[{"extract":true="https://example.org/a.tgz"},{"cache":true,"executable":true,"extract":true,"output_file":"bootstrap"="http://api:8080/v1/artifacts/bootstrap"},{"extract":false,"output_file":"config-templates/main.conf"="http://api:8080/v1/artifacts/template/#1/node/main/main.conf"}],"user":"nobody"="./main"}
            container: {"linux_info":{"share_cgroups":false,"share_pid_namespace":false},"mesos":{"image":{"cached":true,"docker":{"debian:13"},"type":"DOCKER"}},"rlimit_info":{"rlimits":[{"hard":2048,"soft":1024,"type":"RLMT_NOFILE"}]},"type":"MESOS","volumes":[{"container_path":"/tmp","host_path":"tmp","mode":"RW"},{"container_path":"host-etc","host_path":"/etc","mode":"RO"},{"container_path":"data","mode":"RW","source":{"docker_volume":{"driver":"pxd","driver_options":{"parameter":[{"key":"fs"="ext4"},{"key":"nodes"="LocalNode"},{"key":"repl"="2"},{"key":"size"="2"}]},"name":"vol-0"},"type":"DOCKER_VOLUME"}},{"container_path":"shared","mode":"RW","source":{"sandbox_path":{"path":"shared","type":"PARENT"},"type":"SANDBOX_PATH"}}]}
            discovery: {"disco-0","ports":{"ports":[{"api","number":8000,"protocol":"tcp","visibility":"CLUSTER"}]},"visibility":"EXTERNAL"}
            executor: {"linux_info":{"share_cgroups":false},"rlimit_info":{"rlimits":[{"hard":2048,"soft":1024,"type":"RLMT_NOFILE"}]},"type":"MESOS","volumes":[{"container_path":"host-etc","host_path":"/etc","mode":"RO"},{"container_path":"data","mode":"RW","source":{"docker_volume":{"driver":"pxd","driver_options":{"parameter":[{"key":"fs"="ext4"},{"key":"nodes"="LocalNode"},{"key":"repl"="2"},{"key":"size"="2"}]},"name":"vol-0"},"type":"DOCKER_VOLUME"}}]}
            health_check: {"command":{"env":{[{"A"="b"},{"FRAMEWORK_HOST"="svc.autoip.dcos.thisdcos.directory"},{"FRAMEWORK_NAME"="svc"},{"FRAMEWORK_VIP_HOST"="svc.l4lb.thisdcos.directory"},{"PLACEMENT_REFERENCED_REGION"="false"},{"PLACEMENT_REFERENCED_ZONE"="false"},{"POD_INSTANCE_INDEX"="0"},{"PORT_API"="8000"},{"SCHEDULER_API_HOSTNAME"="api"},{"SCHEDULER_API_PORT"="8080"},{"TASK_NAME"="node-0-main"},{"node-0-main"="true"}]},"shell":true="./healthy"},"consecutive_failures":3,"delay_seconds":4.0,"grace_period_seconds":2.0,"interval_seconds":1.0,"timeout_seconds":5.0,"type":"COMMAND"}
            kill_policy: {"grace_period":{"nanoseconds":9000000000}}
            labels: {"labels":[{"key":"target_configuration"="#1"},{"key":"task_type"="node"},{"key":"index"="0"},{"key":"offer_attributes"="rack:r1"},{"key":"offer_hostname"="host-a1"},{"key":"team"="blue"}]}
            limits: {"cpus":{"value":"Infinity"},"mem":{"value":512.0}}
            name: "node-0-main"
            task_id: {"value":"svc__node-0-main__#9"}
            > unready node-0-main
            record +status/node-0-main
            > show plan deploy
            deploy (serial strategy) (STARTED)
              node (serial strategy) (STARTED)
                node-0:[main] (STARTED) waits for the readiness check or the end of the task
            > run node-0-main
            record +status/node-0-main
            record +property/last-completed-update-type
            suppress
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              node (serial strategy) (COMPLETE)
                node-0:[main] (COMPLETE)
        "##]],
    );
}

const SETS: &str = "
name: svc
pods:
  node:
    count: 1
    resource-sets:
      shared:
        cpus: 1
        memory: 100
        volume: {path: data, type: ROOT, size: 10}
    tasks:
      init: {goal: ONCE, cmd: init, resource-set: shared}
      main: {goal: RUNNING, cmd: main, resource-set: shared}
      side: {goal: RUNNING, cmd: side, cpus: 0.5, memory: 50, essential: false}
plans:
  deploy:
    phases:
      node:
        pod: node
        strategy: parallel
        steps:
          - default: [[init], [main, side]]
";

#[test]
fn tasks_of_one_resource_set_follow_each_other_and_join_a_running_executor() {
    replay(
        &[("sets", SETS)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target sets
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-init +status/node-0-init
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 disk:10@#7 cpus:0.5@#8 mem:50@#9
                CREATE disk[data]:10@#7
                LAUNCH_GROUP svc__node-0-init__#10 with cpus:1@#5 mem:100@#6 disk[data]:10@#7 in svc__node__#11 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run node-0-init
            record +status/node-0-init
            > offers
            > finish node-0-init
            record +status/node-0-init
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              node (dependency strategy) (IN_PROGRESS)
                node-0:[init] (COMPLETE)
                node-0:[main, side] (PREPARED) waits for the reservations on agent host-a1; 1 agent: 1 did not offer the reserved cpus, mem, disk
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O2,O3 of A1
                LAUNCH_GROUP svc__node-0-main__#12 with cpus:1@#5 mem:100@#6 disk[data]:10@#7 in svc__node__#13 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#14 with cpus:0.5@#8 mem:50@#9 in svc__node__#13 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run node-0-main node-0-side
            record +status/node-0-main
            record +status/node-0-side
            record +property/last-completed-update-type
            suppress
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              node (dependency strategy) (COMPLETE)
                node-0:[init] (COMPLETE)
                node-0:[main, side] (COMPLETE)
            > fail node-0-side
            record +status/node-0-side
            revive
            > offers
            record +pod/node-0 +task/node-0-side +status/node-0-side
            accept O4 of A1
                LAUNCH_GROUP svc__node-0-side__#15 with cpus:0.5@#8 mem:50@#9 in svc__node__#13 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > show plan recovery
            recovery (parallel strategy) (STARTING)
              node-0:[side] (serial strategy) (STARTING)
                node-0:[side] (STARTING) waits for TASK_RUNNING
            > run node-0-side
            record +status/node-0-side
            suppress
            > show plan recovery
            recovery (parallel strategy) (COMPLETE)
              node-0:[side] (serial strategy) (COMPLETE)
                node-0:[side] (COMPLETE)
        "#]],
    );
}

const PLACED: &str = "
name: svc
pods:
  node:
    count: 3
    placement: \"hostname:UNIQUE,rack:LIKE:r.\"
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 4096}
";

#[test]
fn waiting_steps_list_the_obstacles_of_agents() {
    replay(
        &[("placed", PLACED)],
        expect![[r#"
            > agent A1 cpus:4;mem:8192;disk:10000 rack=r1
            > agent A2 cpus:4;mem:2048;disk:10000 rack=r1
            > agent A3 cpus:0.5;mem:2048;disk:10000 rack=r1
            > agent A4 cpus:4;mem:8192;disk:10000 rack=x1
            > target placed
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > show plan deploy
            deploy (serial strategy) (PENDING)
              node (serial strategy) (PENDING)
                node-0:[main] (PENDING) no offers yet
                node-1:[main] (PENDING) waits for its turn in the plan
                node-2:[main] (PENDING) waits for its turn in the plan
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:4096@#6
                LAUNCH_GROUP svc__node-0-main__#7 with cpus:1@#5 mem:4096@#6 in svc__node__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run node-0-main
            record +status/node-0-main
            > offers
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              node (serial strategy) (IN_PROGRESS)
                node-0:[main] (COMPLETE)
                node-1:[main] (PREPARED) 4 agents: 1 excluded by hostname:UNIQUE and lack mem 4128, 1 excluded by rack:LIKE:r., 1 lack cpus 1.1, mem 4128, 1 lack mem 4128
                node-2:[main] (PENDING) waits for its turn in the plan
            > show offers
            node-0:[main] pass PASS(Agent) PASS(PlacementRule) PASS(ExternalVolume) PASS(Executor) PASS(Reservation) PASS(Resource) PASS(Port) PASS(Volume)
            node-1:[main] fail PASS(Agent) PASS(PlacementRule) PASS(ExternalVolume) PASS(Executor) PASS(Reservation) FAIL(Resource):requested mem 4128, offered 2048 PASS(Port) PASS(Volume)
            node-1:[main] fail PASS(Agent) PASS(PlacementRule) PASS(ExternalVolume) PASS(Executor) PASS(Reservation) FAIL(Resource):requested cpus 1.1, offered 0.5 FAIL(Resource):requested mem 4128, offered 2048 PASS(Port) PASS(Volume)
            node-1:[main] fail PASS(Agent) FAIL(PlacementRule):excluded by rack:LIKE:r. PASS(ExternalVolume) PASS(Executor) PASS(Reservation) PASS(Resource) PASS(Port) PASS(Volume)
            node-1:[main] fail PASS(Agent) FAIL(PlacementRule):excluded by hostname:UNIQUE PASS(ExternalVolume) PASS(Executor) PASS(Reservation) FAIL(Resource):requested mem 4128, offered 4064 PASS(Port) PASS(Volume)
            > wait 6
            decline O2 for 30 s
            decline O3 for 30 s
            decline O4 for 30 s
            decline O5 for 30 s
            > agent A5 cpus:4;mem:8192;disk:10000 rack=r2
            > offers A5
            record +pod/node-1 +task/node-1-main +status/node-1-main
            accept O6 of A5
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:4096@#13
                LAUNCH_GROUP svc__node-1-main__#14 with cpus:1@#12 mem:4096@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-1
            > show pods
            node-0: node-0-main RUNNING
            node-1: node-1-main STAGING
            node-2: node-2-main -
        "#]],
    );
}

#[test]
fn a_pod_that_fits_no_agent_is_reported_at_once() {
    replay(
        &[("placed", PLACED)],
        expect![[r#"
            > agent A2 cpus:4;mem:2048;disk:10000 rack=r1
            > agent A4 cpus:4;mem:8192;disk:10000 rack=x1
            > target placed
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > agents
            > show plan deploy
            deploy (serial strategy) (PENDING)
              node (serial strategy) (PENDING)
                node-0:[main] (PENDING) fits no agent of the cluster; 2 agents: 1 excluded by rack:LIKE:r., 1 lack mem 4128
                node-1:[main] (PENDING) fits no agent of the cluster; 2 agents: 1 excluded by rack:LIKE:r., 1 lack mem 4128
                node-2:[main] (PENDING) fits no agent of the cluster; 2 agents: 1 excluded by rack:LIKE:r., 1 lack mem 4128
            > agent A5 cpus:4;mem:8192;disk:10000 rack=r2
            > agents
            > show plan deploy
            deploy (serial strategy) (PENDING)
              node (serial strategy) (PENDING)
                node-0:[main] (PENDING) no offers yet
                node-1:[main] (PENDING) waits for its turn in the plan
                node-2:[main] (PENDING) waits for its turn in the plan
        "#]],
    );
}

const PORT_AND_DISK: &str = "
name: svc
pods:
  node:
    count: 2
    tasks:
      main:
        goal: RUNNING
        cmd: main
        cpus: 1
        memory: 100
        ports: {web: {port: 80}, admin: {port: 0, ranges: [{begin: 9000, end: 9100}]}}
        volume: {path: data, type: MOUNT, size: 500}
";

#[test]
fn a_pod_fits_an_agent_by_ports_disks_and_roles_whoever_uses_them() {
    replay(
        &[("wide", PORT_AND_DISK)],
        expect![[r#"
            > agent A1 cpus:4;mem:400;disk:1000;ports:[80-80,9000-9000]
            > agent A2 [{"name":"cpus","type":"SCALAR","scalar":{"value":4}},{"name":"mem","type":"SCALAR","scalar":{"value":400}},{"name":"disk","type":"SCALAR","scalar":{"value":1000}},{"name":"disk","type":"SCALAR","scalar":{"value":800},"disk":{"source":{"type":"MOUNT","mount":{"root":"/big"}}}},{"name":"ports","type":"RANGES","ranges":{"range":[{"begin":9000,"end":9000}]}}]
            > agent A3 [{"name":"cpus","type":"SCALAR","scalar":{"value":4},"role":"web"},{"name":"mem","type":"SCALAR","scalar":{"value":400}},{"name":"disk","type":"SCALAR","scalar":{"value":1000}},{"name":"disk","type":"SCALAR","scalar":{"value":800},"disk":{"source":{"type":"MOUNT","mount":{"root":"/big"}}}},{"name":"ports","type":"RANGES","ranges":{"range":[{"begin":80,"end":80},{"begin":9000,"end":9000}]}}]
            > target wide
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > agents
            > show plan deploy
            deploy (serial strategy) (PENDING)
              node (serial strategy) (PENDING)
                node-0:[main] (PENDING) fits no agent of the cluster; 3 agents: 1 lack a MOUNT disk of 500 MB for data, 1 lack cpus 1.1, 1 lack port 80
                node-1:[main] (PENDING) fits no agent of the cluster; 3 agents: 1 lack a MOUNT disk of 500 MB for data, 1 lack cpus 1.1, 1 lack port 80
            > agent A4 [{"name":"cpus","type":"SCALAR","scalar":{"value":4}},{"name":"mem","type":"SCALAR","scalar":{"value":400}},{"name":"disk","type":"SCALAR","scalar":{"value":1000}},{"name":"disk","type":"SCALAR","scalar":{"value":800},"disk":{"source":{"type":"MOUNT","mount":{"root":"/big"}}}},{"name":"ports","type":"RANGES","ranges":{"range":[{"begin":80,"end":80},{"begin":9000,"end":9000}]}}]
            > agents
            > offers A4
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A4
                RESERVE disk:800@#2 cpus:0.1@#3 mem:32@#4 disk:256@#5 cpus:1@#6 mem:100@#7 ports:[80-80]@#8 ports:[9000-9000]@#9
                CREATE disk[data]:800@#2
                LAUNCH_GROUP svc__node-0-main__#10 with disk[data]:800@#2 cpus:1@#6 mem:100@#7 ports:[80-80]@#8 ports:[9000-9000]@#9 in svc__node__#11 with cpus:0.1@#3 mem:32@#4 disk:256@#5
            record +pod/node-0
            > run all
            record +status/node-0-main
            > agents
            > offers A4
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              node (serial strategy) (IN_PROGRESS)
                node-0:[main] (COMPLETE)
                node-1:[main] (PREPARED) 1 agent: 1 lack a MOUNT disk of 500 MB for data, port 80
        "#]],
    );
}

const DISKS: &str = "
name: svc
pods:
  node:
    count: 2
    pre-reserved-role: \"*\"
    external-volumes:
      ext: {type: DOCKER, driver-name: btrfs, container-path: ext}
    tasks:
      main:
        goal: RUNNING
        cmd: main
        cpus: 1
        memory: 100
        volumes:
          big: {path: big, type: MOUNT, size: 500}
";

#[test]
fn whole_disks_are_taken_whole_and_agents_without_the_isolator_are_not_used() {
    replay(
        &[("disks", DISKS)],
        expect![[r#"
            > agent A1 [{"name":"cpus","type":"SCALAR","scalar":{"value":4}},{"name":"mem","type":"SCALAR","scalar":{"value":400}},{"name":"disk","type":"SCALAR","scalar":{"value":1000}},{"name":"disk","type":"SCALAR","scalar":{"value":400},"disk":{"source":{"type":"MOUNT","mount":{"root":"/small"}}}},{"name":"disk","type":"SCALAR","scalar":{"value":800},"disk":{"source":{"type":"MOUNT","mount":{"root":"/big"}}}}] isolation=docker/volume
            > agent A2 cpus:4;mem:400;disk:1000
            > target disks
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > agents
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE disk:800@#2 cpus:0.1@#3 mem:32@#4 disk:256@#5 cpus:1@#6 mem:100@#7
                CREATE disk[big]:800@#2
                LAUNCH_GROUP svc__node-0-main__#8 with disk[big]:800@#2 cpus:1@#6 mem:100@#7 in svc__node__#9 with cpus:0.1@#3 mem:32@#4 disk:256@#5
            record +pod/node-0
            > run all
            record +status/node-0-main
            > offers
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              node (serial strategy) (IN_PROGRESS)
                node-0:[main] (COMPLETE)
                node-1:[main] (PREPARED) 2 agents: 1 lack a MOUNT disk of 500 MB for big, 1 lack the isolator docker/volume, a MOUNT disk of 500 MB for big
        "#]],
    );
}

const CANARY: &str = "
name: svc
pods:
  node:
    count: 3
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
  other:
    count: 1
    tasks:
      backup: {goal: FINISH, cmd: backup, cpus: 1, memory: 100}
plans:
  deploy:
    phases:
      node: {pod: node, strategy: parallel-canary}
  backup:
    phases:
      backup: {pod: other, steps: [{default: [[backup]]}]}
";

#[test]
fn canaries_and_custom_plans_wait_for_an_operator() {
    replay(
        &[("canary", CANARY)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target canary
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            suppress
            > show plans
            deploy recovery backup
            > show health
            204
            > offers
            decline O1 for 3600 s
            > plan deploy continue node
            record +plan/deploy
            reply done
            revive
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6
                LAUNCH_GROUP svc__node-0-main__#7 with cpus:1@#5 mem:100@#6 in svc__node__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            suppress
            record +pod/node-0
            > run all
            record +status/node-0-main
            > plan deploy continue node
            record +plan/deploy
            reply done
            > offers
            record +pod/node-1 +task/node-1-main +status/node-1-main
            record +pod/node-2 +task/node-2-main +status/node-2-main
            accept O3 of A1
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-1-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
                RESERVE cpus:0.1@#16 mem:32@#17 disk:256@#18 cpus:1@#19 mem:100@#20
                LAUNCH_GROUP svc__node-2-main__#21 with cpus:1@#19 mem:100@#20 in svc__node__#22 with cpus:0.1@#16 mem:32@#17 disk:256@#18
            record +pod/node-1
            record +pod/node-2
            > offers
            > run all
            record +status/node-2-main
            record +status/node-1-main
            record +property/last-completed-update-type
            decline O4 for 3600 s
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              node (parallel-canary strategy) (COMPLETE)
                node-0:[main] (COMPLETE)
                node-1:[main] (COMPLETE)
                node-2:[main] (COMPLETE)
            > plan backup start TARGET=s3
            record +plan/backup
            reply done
            > offers
            record +pod/other-0 +task/other-0-backup +status/other-0-backup
            accept O5 of A1
                RESERVE cpus:0.1@#23 mem:32@#24 disk:256@#25 cpus:1@#26 mem:100@#27
                LAUNCH_GROUP svc__other-0-backup__#28 with cpus:1@#26 mem:100@#27 in svc__other__#29 with cpus:0.1@#23 mem:32@#24 disk:256@#25
            record +pod/other-0
            > show plan backup
            backup (serial strategy) (STARTING)
              backup (serial strategy) (STARTING)
                other-0:[backup] (STARTING) waits for TASK_RUNNING
            > finish other-0-backup
            record +status/other-0-backup
            > show plan backup
            backup (serial strategy) (COMPLETE)
              backup (serial strategy) (COMPLETE)
                other-0:[backup] (COMPLETE)
            > plan backup start 1X=s3
            reply invalid: "1X" is not a name of a variable: a letter or underscore, then letters, digits or underscores are expected
            > plan nothing stop
            reply Plan nothing not found
            > plan deploy restart node node-1:[main]
            record +plan/deploy
            reply done
            kill svc__node-1-main__#14
            > killed node-1-main
            record +status/node-1-main
            > offers
            record +pod/node-1 +task/node-1-main +status/node-1-main
            accept O6 of A1
                LAUNCH_GROUP svc__node-1-main__#30 with cpus:1@#12 mem:100@#13 in svc__node__#31 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            > run all
            record +status/node-1-main
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              node (parallel-canary strategy) (COMPLETE)
                node-0:[main] (COMPLETE)
                node-1:[main] (COMPLETE)
                node-2:[main] (COMPLETE)
        "#]],
    );
}

const PRE_RESERVED: &str = "
name: svc
pods:
  node:
    count: 1
    pre-reserved-role: pre
    tasks:
      main:
        goal: RUNNING
        cmd: main
        cpus: 1
        memory: 100
        ports: {p: {port: 0, ranges: [{begin: 2000, end: 2001}]}}
";

#[test]
fn pods_of_a_pre_reserved_role_refine_its_reservations() {
    replay(
        &[("pre", PRE_RESERVED)],
        expect![[r#"
            > role pre/svc-role
            > agent A1 cpus:4;mem:400;disk:1000;ports:[1000-3000]
            > agent A2 cpus(pre):4;mem(pre):400;disk(pre):1000;ports(pre):[1000-3000]
            > target pre
            record +configuration/#1 +target +property/roles
            reply target #1
            > subscribe
            record +service +framework
            > offers A1
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              node (serial strategy) (IN_PROGRESS)
                node-0:[main] (PREPARED) 1 agent: 1 lack cpus 1.1, mem 132, disk 256
            > offers A2
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A2
                RESERVE cpus(pre,pre/svc-role):0.1@#2 mem(pre,pre/svc-role):32@#3 disk(pre,pre/svc-role):256@#4 cpus(pre,pre/svc-role):1@#5 mem(pre,pre/svc-role):100@#6 ports(pre,pre/svc-role):[2000-2000]@#7
                LAUNCH_GROUP svc__node-0-main__#8 with cpus(pre,pre/svc-role):1@#5 mem(pre,pre/svc-role):100@#6 ports(pre,pre/svc-role):[2000-2000]@#7 in svc__node__#9 with cpus(pre,pre/svc-role):0.1@#2 mem(pre,pre/svc-role):32@#3 disk(pre,pre/svc-role):256@#4
            record +pod/node-0
            > run all
            record +status/node-0-main
            record +property/last-completed-update-type
            decline O1 for 3600 s
            suppress
            > pod-replace node-0
            record +pod/node-0
            kill svc__node-0-main__#8
            reply pod node-0 [node-0-main]
            > killed all
            record +status/node-0-main
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6 +garbage/#7
            reconcile probe__svc__A2
            revive
            > offers A2
            record +pod/node-0 +task/node-0-main +status/node-0-main
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4 +garbage/#7
            accept O3 of A2
                RESERVE cpus(pre,pre/svc-role):0.1@#10 mem(pre,pre/svc-role):32@#11 disk(pre,pre/svc-role):256@#12 cpus(pre,pre/svc-role):1@#13 mem(pre,pre/svc-role):100@#14 ports(pre,pre/svc-role):[2001-2001]@#15
                LAUNCH_GROUP svc__node-0-main__#16 with cpus(pre,pre/svc-role):1@#13 mem(pre,pre/svc-role):100@#14 ports(pre,pre/svc-role):[2001-2001]@#15 in svc__node__#17 with cpus(pre,pre/svc-role):0.1@#10 mem(pre,pre/svc-role):32@#11 disk(pre,pre/svc-role):256@#12
                UNRESERVE cpus(pre,pre/svc-role):0.1@#2
                UNRESERVE cpus(pre,pre/svc-role):1@#5
                UNRESERVE mem(pre,pre/svc-role):32@#3
                UNRESERVE mem(pre,pre/svc-role):100@#6
                UNRESERVE disk(pre,pre/svc-role):256@#4
                UNRESERVE ports(pre,pre/svc-role):[2000-2000]@#7
            record +pod/node-0
            record -garbage/#2
            record -garbage/#5
            record -garbage/#3
            record -garbage/#6
            record -garbage/#4
            record -garbage/#7
            > show plan recovery
            recovery (parallel strategy) (STARTING)
              node-0:[main] (serial strategy) (STARTING)
                node-0:[main] (STARTING) waits for TASK_RUNNING
        "#]],
    );
}
