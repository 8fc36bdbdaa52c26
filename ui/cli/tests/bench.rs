//! `tepui bench` hands over to `tepui-bench`, wherever that is, and says how to get it where it is not.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Says what it was asked, and ends as no other program does.
const PRETENDED: &str = "#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n";
const ASKED: [&str; 6] = ["allocator", "--shape", "quota-many-roles", "--agents=3000", "--help", "a b"];

/// The binary in a directory of its own.
fn installed(folder: &Path) -> PathBuf {
    let program = folder.join("tepui");
    std::fs::hard_link(env!("CARGO_BIN_EXE_tepui"), &program).expect("on the same disk");
    program
}

fn pretend(folder: &Path) {
    let program = folder.join("tepui-bench");
    std::fs::write(&program, PRETENDED).expect("it is written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
}

fn bench(program: &Path, path: &Path) -> Output {
    Command::new(program).arg("bench").args(ASKED).env("PATH", path).output().expect("it runs")
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn bench_is_run_beside_the_binary_or_from_the_path() {
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let (beside, elsewhere, nowhere) = (folder(), folder(), folder());
    let program = installed(beside.path());

    let output = bench(&program, nowhere.path());
    assert_eq!(output.status.code(), Some(1));
    let error = said(&output.stderr);
    assert!(
        error.contains("tepui-bench") && error.contains("cargo build --profile dist -p tepui-bench"),
        "{error}"
    );

    pretend(elsewhere.path());
    let shell = |folder: &Path| format!("{}:/usr/bin:/bin", folder.display());
    let output = bench(&program, Path::new(&shell(elsewhere.path())));
    assert_eq!((output.status.code(), said(&output.stdout)), (Some(7), ASKED.join("|") + "|"));

    // The one beside it comes first.
    std::fs::write(elsewhere.path().join("tepui-bench"), "#!/bin/sh\nexit 9\n").expect("it is written");
    pretend(beside.path());
    let output = bench(&program, Path::new(&shell(elsewhere.path())));
    assert_eq!((output.status.code(), said(&output.stdout)), (Some(7), ASKED.join("|") + "|"));
}
