//! `tepui bench` executes `tepui-bench`, or explains how to install it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Prints its arguments and exits with an unusual code.
const FAKE_BENCH: &str = "#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n";
const ARGUMENTS: [&str; 6] = ["allocator", "--shape", "quota-many-roles", "--agents=3000", "--help", "a b"];

/// The binary in a separate directory.
fn installed(folder: &Path) -> PathBuf {
    let program = folder.join("tepui");
    std::fs::hard_link(env!("CARGO_BIN_EXE_tepui"), &program).expect("on the same disk");
    program
}

fn install_fake(folder: &Path) {
    let program = folder.join("tepui-bench");
    std::fs::write(&program, FAKE_BENCH).expect("it is written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
}

fn bench(program: &Path, path: &Path) -> Output {
    Command::new(program).arg("bench").args(ARGUMENTS).env("PATH", path).output().expect("it runs")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn bench_is_found_next_to_the_binary_or_in_the_path() {
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let (sibling, elsewhere, nowhere) = (folder(), folder(), folder());
    let program = installed(sibling.path());

    let output = bench(&program, nowhere.path());
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains("tepui-bench") && error.contains("cargo build --profile dist -p tepui-bench"),
        "{error}"
    );

    install_fake(elsewhere.path());
    let shell = |folder: &Path| format!("{}:/usr/bin:/bin", folder.display());
    let output = bench(&program, Path::new(&shell(elsewhere.path())));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), ARGUMENTS.join("|") + "|"));

    // The one next to the binary takes precedence.
    std::fs::write(elsewhere.path().join("tepui-bench"), "#!/bin/sh\nexit 9\n").expect("it is written");
    install_fake(sibling.path());
    let output = bench(&program, Path::new(&shell(elsewhere.path())));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), ARGUMENTS.join("|") + "|"));
}
