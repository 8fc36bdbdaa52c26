//! `./bootstrap` in the sandbox of a task: this binary under another name, fetched from the scheduler.
//!
//! Runs as the user of the task, with its environment, before its command. Renders config templates.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tepui_service::bootstrap::{self, Arguments, ConfigFile};
use tepui_service::mustache;

pub use tepui_service::bootstrap::FILE_NAME;

/// Between two look-ups of a name that does not resolve.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(1);

/// The program, with its arguments.
pub fn main(words: &[String]) -> ExitCode {
    match run(words, environment()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{FILE_NAME}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn environment() -> BTreeMap<String, String> {
    let texts =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(texts).collect()
}

fn run(words: &[String], env: BTreeMap<String, String>) -> Result<(), String> {
    let arguments = bootstrap::arguments(words)?;
    if arguments.prints_task_ip {
        println!("{}", bootstrap::task_ip(&env)?);
        return Ok(());
    }
    if arguments.prints_environment {
        env.iter().for_each(|(name, value)| println!("{name}={value}"));
    }
    wait_for_hosts(&arguments)?;
    if arguments.renders_templates {
        let sandbox = env.get("MESOS_SANDBOX").ok_or("MESOS_SANDBOX is not set; it runs in tasks only")?;
        for file in bootstrap::config_files(&env)? {
            write_config(&arguments, Path::new(sandbox), &file, &env)
                .map_err(|error| format!("cannot write {} ({}): {error}", file.dest, file.variable))?;
        }
    }
    Ok(())
}

fn wait_for_hosts(arguments: &Arguments) -> Result<(), String> {
    let start = Instant::now();
    for host in &arguments.resolve_hosts {
        while let Err(error) = (host.as_str(), 0).to_socket_addrs() {
            if start.elapsed() >= arguments.resolve_timeout {
                return Err(format!(
                    "{host} does not resolve within {:?}: {error}",
                    arguments.resolve_timeout
                ));
            }
            std::thread::sleep(RESOLVE_INTERVAL);
        }
    }
    Ok(())
}

fn write_config(
    arguments: &Arguments,
    sandbox: &Path,
    file: &ConfigFile,
    env: &BTreeMap<String, String>,
) -> Result<(), String> {
    let template = read_template(&sandbox.join(&file.template), arguments.template_bytes_max)
        .map_err(|error| format!("cannot read template {}: {error}", file.template))?;
    let rendered = mustache::render(&template, env).map_err(|error| {
        let line = template[..error.at].matches('\n').count() + 1;
        format!("template {}, line {line}: {}", file.template, error.message)
    })?;
    for (name, _) in &rendered.missing {
        eprintln!("{FILE_NAME}: {}: variable {name} is not set; it renders as nothing", file.template);
    }
    let dest = Path::new(&file.dest);
    if let Some(directory) = dest.parent().filter(|path| !path.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    }
    std::fs::write(dest, rendered.text).map_err(|error| error.to_string())?;
    if arguments.is_verbose {
        eprintln!("{FILE_NAME}: {} written from {}", file.dest, file.template);
    }
    Ok(())
}

fn read_template(path: &Path, bytes_max: usize) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    match text.len() > bytes_max {
        true => Err(std::io::Error::other(format!("it exceeds {bytes_max} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_rendered_from_the_environment_within_their_limit() {
        let sandbox = tempfile::tempdir().expect("a folder");
        let at = |name: &str| sandbox.path().join(name);
        std::fs::create_dir(at("config-templates")).expect("a folder");
        std::fs::write(at("config-templates/a"), "port = {{PORT}}{{#TLS}} tls{{/TLS}}{{NONE}}\n")
            .expect("written");
        let dest = at("etc/a.conf");
        let pairs = [
            ("MESOS_SANDBOX", sandbox.path().display().to_string()),
            ("PORT", "80".to_owned()),
            ("TLS", "False".to_owned()),
            ("CONFIG_TEMPLATE_A", format!("config-templates/a,{}", dest.display())),
        ];
        let env: BTreeMap<String, String> = pairs.map(|(name, value)| (name.to_owned(), value)).into();
        run(&[], env.clone()).expect("rendered");
        assert_eq!(std::fs::read_to_string(&dest).expect("the file"), "port = 80\n");
        let error = run(&["-template-max-bytes=3".to_owned()], env.clone()).expect_err("too long");
        assert!(error.contains("CONFIG_TEMPLATE_A") && error.contains("exceeds 3 bytes"), "{error}");
        let without = env.into_iter().filter(|(name, _)| name != "MESOS_SANDBOX").collect();
        assert!(run(&[], without).expect_err("no sandbox").contains("MESOS_SANDBOX"));
    }
}
