//! One table: arguments and environment, and the arguments passed to clap.

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::{find, normalise, unsupported};

fn command() -> Command {
    Command::new("agent")
        .arg(Arg::new("work_dir").long("work_dir"))
        .arg(Arg::new("port").long("port"))
        .arg(Arg::new("agent_ping_timeout").long("agent_ping_timeout").alias("slave_ping_timeout"))
        .arg(
            Arg::new("strict")
                .long("strict")
                .action(ArgAction::Set)
                .num_args(0..=1)
                .default_missing_value("true"),
        )
}

#[test]
fn flag_forms_are_normalised() {
    let environment = |name: &str| match name {
        "MESOS_PORT" => Some("1".to_string()),
        "TEPUI_PORT" => Some("2".to_string()),
        "MESOS_SLAVE_PING_TIMEOUT" => Some("3secs".to_string()),
        _ => None,
    };
    let from_environment = ["--port=2", "--agent_ping_timeout=3secs"];
    let table: &[(&[&str], &[&str])] = &[
        (&["--work-dir", "/x"], &["--work_dir", "/x"]),
        (&["--WORK_DIR=/x"], &["--work_dir=/x"]),
        (&["--no-strict"], &["--strict=false"]),
        (&["--strict"], &["--strict"]),
        (&["--unknown-flag"], &["--unknown_flag"]),
        (&["--", "--work-dir"], &["--", "--work-dir"]),
    ];
    for (typed, seen) in table {
        let typed = typed.iter().map(|argument| argument.to_string()).collect();
        let got = normalise(&command(), typed, environment).unwrap();
        let expected: Vec<_> =
            from_environment.iter().chain(*seen).map(Into::into).collect::<Vec<std::ffi::OsString>>();
        assert_eq!(got, expected);
    }
}

#[test]
fn flag_overrides_the_environment_even_by_its_alias() {
    let environment = |name: &str| match name {
        "MESOS_AGENT_PING_TIMEOUT" => Some("9secs".to_string()),
        "TEPUI_PORT" => Some(String::new()), // An empty variable is not set.
        _ => None,
    };
    let got = normalise(&command(), vec!["--slave-ping-timeout=1secs".into()], environment).unwrap();
    assert_eq!(got, ["--slave_ping_timeout=1secs"]);
}

#[test]
fn only_programs_read_flags_from_the_environment() {
    let tasks = Command::new("tasks")
        .arg(Arg::new("master").long("master"))
        .arg(Arg::new("role").long("role"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue));
    let environment = |name: &str| Some(format!("from {name}"));
    let got = normalise(&tasks, vec![], environment).unwrap();
    assert_eq!(got, ["--master=from TEPUI_MASTER"]);
}

#[test]
fn a_file_value_is_its_content() {
    let file = std::env::temp_dir().join(format!("tepui-flag-{}", std::process::id()));
    std::fs::write(&file, "8080\n").unwrap();
    let got = normalise(&command(), vec![format!("--port=file://{}", file.display())], |_| None).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(got, ["--port=8080"]);
    let error = normalise(&command(), vec!["--port=file:///does/not/exist".into()], |_| None).unwrap_err();
    assert_eq!(error.to_string(), "--port: cannot read the file /does/not/exist");
}

#[test]
fn unsupported_flags_are_rejected_with_a_reason() {
    let error = normalise(&Command::new("master"), vec!["--zk=zk://h/p".into()], |_| None).unwrap_err();
    assert!(error.to_string().starts_with("--zk is not supported: "), "{error}");
}

#[test]
fn unsupported_environment_variables_are_rejected() {
    let environment = |name: &str| (name == "MESOS_MODULES").then(|| "/x".to_string());
    let error = normalise(&Command::new("agent"), vec![], environment).unwrap_err();
    assert!(error.to_string().starts_with("MESOS_MODULES is set and not supported: "), "{error}");
    assert!(normalise(&Command::new("tasks"), vec![], environment).is_ok(), "only programs have it");
}

/// The rows of docs/compat.md about the flags of a program: name, state, note.
fn rows_of_compat(program: &str) -> Vec<[&'static str; 3]> {
    let heading = format!("Flags of `tepui {program}`");
    let compat = include_str!("../../../../docs/compat.md");
    let section = compat.split("\n## ").find(|section| section.starts_with(&heading)).unwrap();
    let cells = |row: &'static str| {
        let [name, state, note] =
            row.strip_prefix("| `")?.strip_suffix('|')?.splitn(3, " |").collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        Some([name.trim_end_matches('`'), state.trim(), note.trim()])
    };
    section.lines().filter_map(cells).collect()
}

#[test]
fn flags_agree_with_compat() {
    let mut tepui = crate::Tepui::command();
    tepui.build();
    for program in ["master", "agent"] {
        let command = tepui.find_subcommand(program).unwrap();
        let rows = rows_of_compat(program);
        assert!(rows.len() > 80, "{} flags of {program}", rows.len());
        for [name, state, note] in rows {
            match state {
                "no" => assert_eq!(unsupported::reason(program, name), Some(note), "{program} --{name}"),
                _ => {
                    assert_eq!(unsupported::reason(program, name), None, "{program} --{name}");
                    assert!(find(command, name).is_some(), "{program} has no --{name}");
                }
            }
        }
    }
}

#[test]
fn flags_of_the_executed_command_are_not_changed() {
    let exec = Command::new("exec")
        .arg(Arg::new("framework").long("framework"))
        .arg(Arg::new("tty").long("tty").short('t').action(ArgAction::SetTrue))
        .arg(Arg::new("task"))
        .arg(Arg::new("command").num_args(1..).trailing_var_arg(true));
    let table: &[(&[&str], &[&str])] = &[
        (&["web", "ls", "--Full-Time"], &["web", "ls", "--Full-Time"]),
        (&["--framework", "f", "web", "ls", "--A-B"], &["--framework", "f", "web", "ls", "--A-B"]),
        (&["--FRAMEWORK=f", "-t", "web", "ls", "--A-B"], &["--framework=f", "-t", "web", "ls", "--A-B"]),
        (&["web", "--TTY", "ls", "--A-B"], &["web", "--tty", "ls", "--A-B"]),
    ];
    for (typed, seen) in table {
        let typed = typed.iter().map(|argument| argument.to_string()).collect();
        assert_eq!(normalise(&exec, typed, |_| None).unwrap(), *seen);
    }
}
