//! Arguments and their parsed form, without a master.

use expect_test::{Expect, expect};

use super::*;

/// Truncates long lists of possible values.
const LINE_CHARS_SHOWN: usize = 80;

/// The parsed arguments of `tepui`: flags with their values, or the first lines of the error.
fn parsed_text(arguments: &str) -> String {
    let first_lines = |text: String| {
        let lines = text.lines().filter(|line| !line.is_empty()).take(3);
        let cut = |line: &str| line.chars().take(LINE_CHARS_SHOWN).collect::<String>().trim_end().to_string();
        lines.map(cut).collect::<Vec<_>>().join("\n")
    };
    let arguments = ["tepui"].into_iter().chain(arguments.split_whitespace()).map(str::to_string);
    match parse(arguments.collect(), |_| None) {
        Ok((_, flags)) => {
            flags.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
        Err(error) => first_lines(format!("{error:#}")),
    }
}

#[test]
fn command_tree_is_valid() {
    tree().debug_assert();
}

/// Names with dashes are read as names with underscores, so that both forms are accepted.
#[test]
fn names_of_flags_have_no_dashes() {
    fn check(command: &clap::Command) {
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(!flag.contains('-'), "--{flag} of {}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&tree());
}

#[test]
fn lists_accept_their_flags() {
    let table: &[(&str, Expect)] = &[
        ("--master m:1 task t", expect!["master=m:1 task=t json=false"]),
        ("--master=m:1 task t", expect!["master=m:1 task=t json=false"]),
        (
            "--master",
            expect![[r#"
            error: unexpected argument '--master' found
            Usage: tepui <COMMAND>
            For more information, try '--help'."#]],
        ),
        (
            "tasks --all --sort -cpus --state RUNNING,failed --framework=web",
            expect![
                "all=true sort=-cpus state=RUNNING,failed framework=web master=127.0.0.1:5050 watch=false json=false full=false"
            ],
        ),
        (
            "agents --watch --json",
            expect![[r#"
            error: the argument '--watch' cannot be used with '--json'
            Usage: tepui agents --watch
            For more information, try '--help'."#]],
        ),
        (
            "tasks --state runing",
            expect![[r#"
                error: invalid value 'runing' for '--state <STATE>'
                  [possible values: staging, starting, running, killing, unreachable, finished,
                  tip: a similar value exists: 'running'"#]],
        ),
        (
            "metrics *cpu* --agent S0",
            expect!["pattern=*cpu* agent=S0 master=127.0.0.1:5050 watch=false json=false full=false"],
        ),
        ("logs -fn 10 t1 stderr", expect!["follow=true lines=10 task=t1 file=stderr master=127.0.0.1:5050"]),
        (
            "completions tcsh",
            expect![[r#"
            error: invalid value 'tcsh' for '<SHELL>'
              [possible values: bash, elvish, fish, powershell, zsh]
              tip: a similar value exists: 'zsh'"#]],
        ),
        (
            "taks",
            expect![[r#"
            error: unrecognized subcommand 'taks'
              tip: some similar subcommands exist: 'tasks', 'task'
            Usage: tepui <COMMAND>"#]],
        ),
        (
            "task",
            expect![[r#"
            error: the following required arguments were not provided:
              <TASK>
            Usage: tepui task <TASK>"#]],
        ),
    ];
    for (arguments, expected) in table {
        expected.assert_eq(&parsed_text(arguments));
    }
}

#[test]
fn agent_subcommand_starts_or_shows_an_agent() {
    let parsed = |arguments: &[&str]| parse(arguments.iter().map(|one| one.to_string()).collect(), |_| None);
    let (tepui, _) = parsed(&["tepui", "agent", "S0", "--master=m:1"]).unwrap();
    assert!(matches!(tepui.command, Command::Agent(agent) if agent.id.as_deref() == Some("S0")));
    let (tepui, _) = parsed(&["tepui", "agent", "--master=m:1", "--work-dir=/w"]).unwrap();
    assert!(matches!(tepui.command, Command::Agent(agent) if agent.id.is_none()));
    expect![[r#"
        error: the following required arguments were not provided:
          --master <HOST:PORT>
        Usage: tepui agent --master=HOST:PORT --work_dir=DIR [FLAGS]"#]]
    .assert_eq(&parsed_text("agent --work_dir=/w"));
    expect![[r#"
        error: the following required arguments were not provided:
          <ID>
        Usage: tepui agent --master=HOST:PORT --work_dir=DIR [FLAGS]"#]]
    .assert_eq(&parsed_text("agent --master=m --work_dir=/w --json"));
}

#[test]
fn programs_read_booleans_from_the_environment() {
    let environment = |name: &str| match name {
        "TEPUI_QUIET" => Some("true".to_string()),
        "MESOS_HOSTNAME_LOOKUP" => Some("false".to_string()),
        _ => None,
    };
    let (tepui, _) = parse(vec!["tepui".to_string(), "master".to_string()], environment).unwrap();
    let Command::Master(flags) = tepui.command else { panic!("another command") };
    assert!(flags.logging.quiet);
    assert!(!flags.address.hostname_lookup);
}

#[test]
fn listen_address_is_a_flag_or_discovered() {
    let parsed = |more: &[&str]| {
        let arguments = ["tepui", "master"].iter().chain(more).map(|one| one.to_string()).collect();
        match parse(arguments, |_| None)?.0.command {
            Command::Master(flags) => flags.address.listen().map(|ip| ip.to_string()),
            _ => panic!("another command"),
        }
    };
    for (flags, address) in [
        (&[][..], "127.0.0.1"),
        (&["--ip=::1"], "::1"),
        (&["--ip_discovery_command=echo 10.0.0.7"], "10.0.0.7"),
    ] {
        assert_eq!(parsed(flags).unwrap(), address);
    }
    for (flags, reason) in [
        (
            &["--ip_discovery_command=echo nowhere"][..],
            "echo nowhere printed \"nowhere\", which is not an address",
        ),
        (&["--ip_discovery_command=echo lost >&2; exit 3"], "exit status: 3: lost"),
        (&["--ip_discovery_command=echo 10.0.0.7", "--ip=::1"], "cannot be used with"),
    ] {
        let error = format!("{:#}", parsed(flags).unwrap_err());
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn the_help_is_grouped() {
    let headings = |name: &str| {
        let mut tree = tree();
        let command = tree.find_subcommand_mut(name).cloned().unwrap_or(tree);
        let help = command.clone().render_help().to_string();
        let is_heading = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
        help.lines().filter(is_heading).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(headings(""), "Programs: Inspect: Manage: Other: Options:");
    assert_eq!(
        headings("master"),
        "Options: Network: Registry: Roles and offers: Agents: Retention: Security: TLS: Logging:"
    );
    let agent = "Arguments: Options: Network: Directories: Resources: Containers: Restarts and time limits: \
                 Clean-up: Security: Images and volumes: Oversubscription: TLS: Logging:";
    assert_eq!(headings("agent"), agent);
}

#[test]
fn secrets_are_redacted_in_shown_flags() {
    for (flag, text, shown) in [
        ("docker_config", r#"{"auths":{"r":{"auth":"aGlkZGVu"}}}"#, "***"),
        ("docker_config", "file:///etc/docker.json", "file:///etc/docker.json"),
        ("registry", "etcd://me:hidden@a:1/b", "etcd://me:***@a:1/b"),
        ("cluster", "{x}", "{x}"),
    ] {
        assert_eq!(super::without_secrets(flag, text), shown, "{flag}");
    }
}
