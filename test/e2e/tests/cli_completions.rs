//! Completions in real shells, by the tab key.

use std::path::Path;
use std::process::Command;

use tepui_e2e::binary;
use tepui_facilities::{Facility, available};

/// What was typed, and what must be and must not be among what is offered.
const TYPED: &[(&str, &[&str], &[&str])] = &[
    ("tepui ta", &["task", "tasks"], &["agents", "roles"]),
    ("tepui comp", &["completions"], &["task"]),
    ("tepui tasks --so", &["--sort"], &["--json"]),
    ("tepui tasks --", &["--watch", "--json", "--framework", "--state"], &["--work_dir"]),
    ("tepui master --regis", &["--registry", "--registry_max_agent_age"], &["--port"]),
    ("tepui agent --work", &["--work_dir"], &["--watch"]),
    ("tepui logs --fol", &["--follow"], &["--json"]),
    // What is in the cluster is not among the files here.
    ("tepui tasks --sort tepui", &[], &["tepui.bash", "tepui.fish"]),
];

#[test]
fn bash_completes() {
    if !available(&[Facility::Program("bash")]) {
        return;
    }
    // The arguments are the script and what was typed; the last word is completed as bash does it.
    const ASK: &str = r#"
        source "$1"; read -ra COMP_WORDS <<< "$2"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        words=$(complete -p tepui); [[ $words =~ -F\ ([^ ]+) ]]
        "${BASH_REMATCH[1]}" tepui "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    check("bash", "tepui.bash", |script, typed| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "--noprofile", "-c", ASK, "bash"]).arg(script).arg(typed);
        output_of(bash.current_dir(script.parent().expect("a directory")))
    });
}

#[test]
fn fish_completes() {
    if !available(&[Facility::Program("fish")]) {
        return;
    }
    const ASK: &str = "source $argv[1]; complete -C $argv[2]";
    check("fish", "tepui.fish", |script, typed| {
        let home = script.parent().expect("a directory");
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", ASK]).arg(script).arg(typed).env("HOME", home).current_dir(home);
        // Each line is a word, a tab and what it means.
        output_of(&mut fish).lines().filter_map(|line| line.split('\t').next()).collect::<Vec<_>>().join("\n")
    });
}

#[test]
fn zsh_completes() {
    if !available(&[Facility::Program("zsh"), Facility::Program("timeout")]) {
        return;
    }
    // Nothing but a terminal makes zsh complete. Of several that fit the first tab types what they share, the second lists.
    // Its line editor says when it is there: before that the terminal itself would take what is typed.
    const ASK: &str = r#"
        zmodload zsh/zpty; zpty shell zsh -f -i
        zpty -w shell "PROMPT=; fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; LISTMAX=999"
        zpty -w shell "stty rows 200 columns 200; zle-line-init() { print REA''DY }; zle -N zle-line-init"
        zpty -r -m shell seen '*READY*'
        zpty -w -n shell "$2"$'\t\t\C-u'; zpty -w shell "print DO''NE"
        zpty -r -m shell seen '*DONE*'; print -r -- "$seen"; zpty -d shell"#;
    check("zsh", "_tepui", |script, typed| {
        let folder = script.parent().expect("a directory");
        // A shell that waits for ever is ended.
        let mut zsh = Command::new("timeout");
        zsh.args(["60", "zsh", "-f", "-c", ASK, "zsh"]).arg(folder).arg(typed);
        zsh.env("PATH", path_with_tepui()).current_dir(folder);
        let seen = without_controls(&output_of(&mut zsh));
        seen.split(|c: char| c.is_whitespace() || c == '=').collect::<Vec<_>>().join("\n")
    });
}

/// What stands on a terminal, with a blank in place of each command to it.
fn without_controls(seen: &str) -> String {
    let mut parts = seen.split("\x1b[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push(' ');
        text.push_str(
            part.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).get(1..).unwrap_or_default(),
        );
    }
    text.replace(char::is_control, " ")
}

/// Asks for each of what is typed; `ask` gives the words that are offered, one on each line.
fn check(shell: &str, file: &str, ask: impl Fn(&Path, &str) -> String) {
    let folder = tempfile::tempdir().expect("a directory");
    let script = folder.path().join(file);
    let text = output_of(Command::new(binary()).args(["completions", shell]));
    std::fs::write(&script, text).expect("it can be written");
    for (typed, offered, others) in TYPED {
        let answer = ask(&script, typed);
        let words: Vec<&str> = answer.lines().collect();
        for word in *offered {
            assert!(words.contains(word), "{shell} does not offer {word} for {typed:?}:\n{answer}");
        }
        for word in *others {
            assert!(!words.contains(word), "{shell} offers {word} for {typed:?}:\n{answer}");
        }
    }
}

fn output_of(command: &mut Command) -> String {
    let output = command.output().expect("test/setup installs the shells");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn path_with_tepui() -> std::ffi::OsString {
    let ours = binary().parent().expect("a directory").to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(ours).chain(std::env::split_paths(&path))).expect("a path")
}
