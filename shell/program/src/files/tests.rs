//! Real sandboxes: what is shown of them, and what is not shown whatever a task puts in them.

use std::os::unix::fs::symlink;

use tempfile::TempDir;
use tepui_http::Body;

use super::*;

/// One executor E of framework F, whose sandbox holds a few files.
struct Bench {
    dir: TempDir,
    attached: Vec<Attached>,
}

fn bench() -> Bench {
    let dir = TempDir::new().unwrap();
    let runs = dir.path().join("slaves/S0/frameworks/F/executors/E/runs");
    let sandbox = runs.join("c1");
    std::fs::create_dir_all(sandbox.join("sub")).unwrap();
    std::fs::write(sandbox.join("stdout"), b"hello\xff world\n").unwrap();
    std::fs::write(sandbox.join("sub/deep"), "deep").unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    symlink("c1", runs.join("latest")).unwrap();
    std::fs::write(dir.path().join("log"), "words\n").unwrap();
    let names = [
        (sandbox.display().to_string(), sandbox.display().to_string()),
        (runs.join("latest").display().to_string(), sandbox.display().to_string()),
        ("/frameworks/F/executors/E/runs/latest".to_owned(), sandbox.display().to_string()),
        ("/slave/log".to_owned(), dir.path().join("log").display().to_string()),
    ];
    let attached = names.map(|(path, real)| Attached { path, real }).into();
    Bench { dir, attached }
}

impl Bench {
    fn sandbox(&self) -> String {
        format!("{}/slaves/S0/frameworks/F/executors/E/runs/c1", self.dir.path().display())
    }

    fn read(&self, path: &str) -> Result<String, String> {
        match read(&self.attached, path, 0, None) {
            Ok((data, _)) => Ok(String::from_utf8_lossy(&data).into_owned()),
            Err(error) => {
                let error = HttpError::from(error);
                Err(format!("{} {}", error.status.as_u16(), error.message))
            }
        }
    }
}

#[test]
fn attached_paths_resolve_to_sandbox_directories() {
    let bench = bench();
    let sandbox = bench.sandbox();
    let latest = sandbox.replace("/runs/c1", "/runs/latest");
    for name in [sandbox.as_str(), &latest, "/frameworks/F/executors/E/runs/latest"] {
        assert_eq!(bench.read(&format!("{name}/sub/deep")).unwrap(), "deep", "{name}");
        assert_eq!(bench.read(&format!("{name}//sub/./deep")).unwrap(), "deep", "{name}");
    }
    let debug = String::from_utf8(debug_document(&bench.attached)).unwrap();
    assert!(debug.contains(&format!("\"{latest}\":\"{sandbox}\"")), "{debug}");
}

#[test]
fn paths_outside_of_the_sandbox_are_rejected() {
    let bench = bench();
    let sandbox = bench.sandbox();
    let outside = bench.dir.path().join("secret");
    symlink(&outside, format!("{sandbox}/link")).unwrap();
    symlink(bench.dir.path(), format!("{sandbox}/dir")).unwrap();
    symlink("/etc", format!("{sandbox}/etc")).unwrap();
    symlink(format!("{sandbox}/sub/deep"), format!("{sandbox}/inside")).unwrap();
    symlink("loop", format!("{sandbox}/loop")).unwrap();
    for (path, status) in [
        ("link", "400"),
        ("dir/secret", "400"),
        ("etc/passwd", "400"),
        ("../../../../../../../../secret", "400"),
        ("sub/../../c1/../../../../../../../../secret", "400"),
        ("missing", "404"),
        ("stdout/x", "404"),
        ("loop", "500"),
        ("sub", "400 Cannot read a directory."),
    ] {
        let refused = bench.read(&format!("{sandbox}/{path}")).unwrap_err();
        assert!(refused.starts_with(status), "{path}: {refused}");
    }
    assert_eq!(bench.read(&format!("{sandbox}/inside")).unwrap(), "deep");
    for path in ["/etc/passwd", "/", "", "relative", &format!("{sandbox}2/stdout"), "/proc/self/environ"] {
        assert_eq!(bench.read(path).unwrap_err(), "404 ", "{path}");
    }
}

#[test]
fn single_files_can_be_attached() {
    let bench = bench();
    assert_eq!(bench.read("/slave/log").unwrap(), "words\n");
    assert_eq!(browse(&bench.attached, "/slave/log").unwrap(), []);
    for path in ["/slave/log/x", "/slave/log/..", "/slave", "/slave/logs"] {
        assert!(bench.read(path).is_err(), "{path}");
    }
}

#[test]
fn reading_a_pipe_is_rejected_without_blocking() {
    let bench = bench();
    let path = format!("{}/pipe", bench.sandbox());
    nix::unistd::mkfifo(path.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(bench.read(&path).unwrap_err().starts_with("400"));
}

#[test]
fn browse_lists_sorted_entries_and_does_not_follow_outside_links() {
    let bench = bench();
    let sandbox = bench.sandbox();
    symlink("/etc/passwd", format!("{sandbox}/out")).unwrap();
    symlink("nowhere", format!("{sandbox}/dangling")).unwrap();
    let entries = browse(&bench.attached, &format!("{sandbox}/")).unwrap();
    let mut w = JsonWriter::new();
    w.array(|w| entries.iter().for_each(|entry| entry.write(w)));
    let text = String::from_utf8(w.into_vec()).unwrap();
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry.path.rsplit('/').next()).collect();
    assert_eq!(names, ["out", "stdout", "sub"]);
    assert!(text.contains("\"mode\":\"lrwxrwxrwx\"") && text.contains("\"mode\":\"drwx"), "{text}");
    assert!(text.contains("\"size\":13"), "{text}");
    assert_eq!(browse(&bench.attached, &format!("{sandbox}/stdout")).unwrap(), []);
}

#[test]
fn reading_follows_the_query() {
    let bench = bench();
    let path = format!("{}/stdout", bench.sandbox());
    let get = |query: &str| {
        let query = Query::parse(format!("path={path}&{query}"));
        match read_document(&bench.attached, &query).map(Response::into_body) {
            Ok(Body::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
            Ok(_) => "no bytes".to_owned(),
            Err(error) => format!("{} {}", error.status.as_u16(), error.message),
        }
    };
    for (query, answer) in [
        ("offset=0", r#"{"data":"hello? world\n","offset":0}"#),
        ("offset=6&length=4", r#"{"data":" wor","offset":6}"#),
        ("offset=0&length=-1", r#"{"data":"hello? world\n","offset":0}"#),
        ("offset=-1", r#"{"data":"","offset":13}"#),
        ("", r#"{"data":"","offset":13}"#),
        ("offset=99999&length=5", r#"{"data":"","offset":99999}"#),
        ("offset=-5", "400 Negative offset provided: -5.\n"),
        ("offset=0&length=-2", "400 Negative length provided: -2.\n"),
        ("offset=x", "400 Failed to parse offset: invalid digit found in string.\n"),
    ] {
        assert_eq!(get(query), answer, "{query}");
    }
    assert!(read_document(&bench.attached, &Query::parse("")).is_err());
}

#[test]
fn read_returns_at_most_64_kib() {
    let bench = bench();
    let path = format!("{}/large", bench.sandbox());
    std::fs::write(&path, vec![b'x'; 200_000]).unwrap();
    let (data, size) = read(&bench.attached, &path, 10, None).unwrap();
    assert_eq!((data.len(), size), (65_536, 200_000));
}
