//! Command lines and what they mean.

use super::*;

fn parse(line: &str, variables: &[(&str, &str)]) -> Result<Command, String> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let find =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Command::parse(&arguments, find).map_err(|error| error.to_string())
}

fn manage(line: &str, variables: &[(&str, &str)]) -> Manage {
    match parse(line, variables) {
        Ok(Command::Manage(manage)) => manage,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn long_options_take_one_or_two_dashes() {
    for line in [
        "-l debug -experimental manage -H 127.0.0.1:6000 -strategy binpack --heartbeat=1s -cluster-opt mesos.user=u m:5050",
        "--log-level=debug --experimental manage --host=127.0.0.1:6000 --strategy=binpack --heartbeat 1s \
         --cluster-opt=mesos.user=u m:5050",
    ] {
        let manage = manage(line, &[]);
        assert_eq!(manage.master, "m:5050");
        assert_eq!(manage.hosts, [Host::Tcp("127.0.0.1:6000".to_owned())]);
        assert_eq!(manage.scheduler.strategy, Strategy::BinPack);
        assert_eq!(manage.cluster.user.as_deref(), Some("u"));
        assert_eq!(manage.ignored, ["--experimental", "--heartbeat"]);
    }
}

#[test]
fn defaults_and_variables_configure_the_manager() {
    let manage = manage("manage", &[("SWARM_DISCOVERY", "a:1,b:2"), ("SWARM_HOST", "unix:///run/s.sock")]);
    assert_eq!(
        (&*manage.master, &manage.hosts[..]),
        ("a:1,b:2", &[Host::Unix("/run/s.sock".to_owned())][..])
    );
    assert_eq!(manage.scheduler.filters, Filter::ALL);
    let hosts = self::manage("manage -H 127.0.0.1:1 --host unix:///s m:1", &[("SWARM_HOST", "b:2")]).hosts;
    assert_eq!(hosts, [Host::Tcp("127.0.0.1:1".to_owned()), Host::Unix("/s".to_owned())]);
    let defaults = self::manage("m x:1", &[]);
    assert_eq!(defaults.hosts, [Host::Tcp("127.0.0.1:2375".to_owned())]);
    assert_eq!(defaults.engine_socket, "/var/run/docker.sock");
    let filters = self::manage("manage -f constraint --filter=health x:1", &[]).scheduler.filters;
    assert_eq!(filters, [Filter::Constraint, Filter::Health], "in the order given");
}

#[test]
fn wrong_command_lines_have_the_texts_of_classic_swarm() {
    for (line, text) in [
        ("manage", "discovery required to manage a cluster. See 'swarm manage --help'."),
        ("manage a b", "one master is expected; \"b\" is one too many"),
        ("manage --strategy best m:1", "strategy not supported"),
        ("manage -f best m:1", "filter not supported"),
        ("manage -c swarm m:1", "unsupported cluster \"swarm\""),
        ("manage --tls m:1", "--tlscert and --tlskey must be provided when using --tls"),
        (
            "manage --tlsverify --tlscert c --tlskey k m:1",
            "--tlscacert must be provided when using --tlsverify",
        ),
        (
            "manage --tlscert c m:1",
            "--tlscert, --tlskey and --tlscacert require the use of either --tls or --tlsverify",
        ),
        ("manage --engine-refresh-min-interval 0s m:1", "min refresh interval should be a positive number"),
        (
            "manage --engine-refresh-min-interval 30s -engine-refresh-max-interval 20s m:1",
            "max refresh interval cannot be less than min refresh interval",
        ),
        (
            "manage --engine-refresh-retry 5 m:1",
            "--engine-refresh-retry is deprecated. Use --engine-failure-retry",
        ),
        ("manage --engine-failure-retry 0 m:1", "invalid failure retry count"),
        ("manage --heartbeat 10ms m:1", "--heartbeat should be at least one second"),
        (
            "manage --discovery-opt kv.path=a --discovery-opt x m:1",
            "--discovery-opt must contain key=value strings",
        ),
        ("manage --heartbeat", "flag needs an argument: -heartbeat"),
        ("manage --best m:1", "flag provided but not defined: -best. See 'swarm manage --help'."),
        ("manage -H x m:1", "--host \"x\" must be tcp://IP:PORT or unix:///PATH"),
        ("-l loud manage m:1", "--log-level must be debug, info, warn, error, fatal or panic, not \"loud\""),
        ("manage --replication m:1", "--advertise address must be provided when using --leader-election"),
        (
            "manage --replication --advertise x m:1",
            "--advertise should be of the form ip:port or hostname:port",
        ),
        (
            "manage --replication --advertise x:1 --replication-ttl 0s m:1",
            "--replication-ttl should be a positive number",
        ),
        (
            "manage --replication --advertise x:1 m:1",
            "Leader election is only supported with consul, etcd and zookeeper discovery. \
             Name the master by etcd://host:port/prefix.",
        ),
        ("create x", "the `create` command takes no arguments. See 'swarm create --help'."),
        ("frob", "no such command: frob; there are: manage, list, join, create"),
    ] {
        assert_eq!(parse(line, &[]).map(drop), Err(text.to_owned()), "{line}");
    }
    let open = parse("manage -H tcp://0.0.0.0:2375 m:1", &[]).expect_err("everybody");
    assert!(open.starts_with("--host \"tcp://0.0.0.0:2375\": everybody who can connect is root"), "{open}");
}

#[test]
fn tls_and_replication_options_are_parsed() {
    let line = "manage --tlsverify --tlscert c --tlskey k --tlscacert a -H 0.0.0.0:3376 m:1";
    let tls = TlsPaths { cert: "c".to_owned(), key: "k".to_owned(), ca: Some("a".to_owned()) };
    let verified = manage(line, &[]);
    assert_eq!(verified.tls, Some(tls.clone()));
    assert_eq!(verified.hosts, [Host::Tcp("0.0.0.0:3376".to_owned())], "verified clients come from anywhere");
    let unverified = manage("manage --tls --tlscert c --tlskey k --tlscacert a m:1", &[]);
    assert_eq!(unverified.tls, Some(TlsPaths { ca: None, ..tls }));
    let line = "manage --replication --replication-ttl 5s etcd://e:1/x";
    let replicated = manage(line, &[("SWARM_ADVERTISE", "h:2")]);
    let ttl = Duration::from_secs(5);
    assert_eq!(replicated.replication, Some(Replication { advertise: "h:2".to_owned(), ttl }));
}

#[test]
fn unsupported_commands_suggest_an_alternative() {
    for (line, part) in [
        ("list token://x", "`docker info` at the manager shows them"),
        ("join --advertise=a:1 x", "start an agent beside each of them"),
        ("create", "name the master instead"),
    ] {
        let text = parse(line, &[]).expect_err(line);
        assert!(text.contains(part), "{line}: {text}");
    }
    assert!(matches!(parse("", &[]), Ok(Command::Help)));
    assert!(matches!(parse("manage --help", &[]), Ok(Command::Help)));
    assert!(matches!(parse("-v", &[]), Ok(Command::Version)));
}
