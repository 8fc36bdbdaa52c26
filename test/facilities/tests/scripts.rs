//! The scripts for skipped tests: the facilities of a machine, and the summary of `./check`.

use std::path::PathBuf;
use std::process::Command;

use tepui_facilities::{Facility, available};

/// Runs a script of `test`; its output.
fn run(name: &str, arguments: &[&str]) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let output = Command::new("bash").arg(script).args(arguments).output().expect("bash starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Otherwise a test would be skipped although the machine has its facility.
#[test]
fn probes_agree_with_the_machine() {
    if !available(&[Facility::Program("bash"), Facility::Program("awk")]) {
        return;
    }
    for name in run("offers", &[]).trim().split(',').filter(|name| !name.is_empty()) {
        let known = [
            Facility::Root,
            Facility::Mounts,
            Facility::Cgroups,
            Facility::CgroupsV1,
            Facility::CgroupsV2,
            Facility::Docker,
            Facility::Busybox,
            Facility::Pymesos,
            Facility::Buttervolume,
            Facility::Postgresql,
        ];
        let name: &'static str = name.to_owned().leak();
        let facility = known.into_iter().find(|one| one.name() == name).unwrap_or(Facility::Program(name));
        assert!(available(&[facility]), "{name}");
    }
}

#[test]
fn the_summary_counts_and_names_skipped_tests() {
    if !available(&[Facility::Program("bash"), Facility::Program("awk")]) {
        return;
    }
    let dir = std::env::temp_dir().join(format!("tepui-summary-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a directory");
    for (file, text) in [
        (
            "tests.log",
            "  Summary [ 9.1s] 186 tests run: 183 passed (2 slow), 2 failed, 1 timed out, 9 skipped\n",
        ),
        ("doc.log", "test result: ok. 4 passed; 0 failed; 0 ignored\ntest result: ok. 1 passed; 0 failed\n"),
        (
            "skipped",
            "a::b one\troot\twhy\na::b one\troot\twhy\na::b two\tdocker\tno program dockerd in PATH\n",
        ),
        (
            "v2.log",
            "v2: skipped a::c three\tdocker\tno\ntest result: ok. 7 passed; 0 failed\nv2: all passed\n",
        ),
    ] {
        std::fs::write(dir.join(file), text).expect("written");
    }
    let expected = "this machine: 186 passed, 3 failed, 2 skipped\n  \
        skipped a::b one: needs root: why\n  \
        skipped a::b two: needs docker: no program dockerd in PATH\n\
        cgroup v2: 6 passed, 0 failed, 1 skipped\n  \
        skipped a::c three: needs docker: no\n";
    let found = run("summary", &[dir.to_str().expect("text")]);
    std::fs::remove_dir_all(&dir).expect("removed");
    assert_eq!(found, expected);
}
