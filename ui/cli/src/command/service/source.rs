//! The files of a service: its spec, the config templates beside it and its options.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use tepui_service::mustache::RENDERED_BYTES_MAX;
use tepui_service::options::Options;
use tepui_service::spec::ServiceSpec;
use tepui_service::{Input, Report, parse};
use tepui_service_shell::Upload;

use super::counted;
use crate::output;

/// The secret of the principal that this process is.
const SECRET_VARIABLE: &str = "TEPUI_SECRET";

#[derive(Args, Clone, Debug)]
pub struct Source {
    /// Service spec in YAML; environment variables are rendered into it, config templates are read from its
    /// directory.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Options of the service, a JSON file; `tepui service describe` lists them.
    #[arg(long, value_name = "FILE")]
    pub options: Option<PathBuf>,
}

impl Source {
    /// The spec, with its warnings printed; none after its errors are printed.
    pub fn read(&self) -> Result<Option<ServiceSpec>> {
        Ok(match self.parse()? {
            Ok((spec, report)) => {
                print_problems(&report);
                Some(spec)
            }
            Err(report) => {
                print_problems(&report);
                let count = counted(report.errors(), "error");
                let file = &report.file;
                eprintln!("{}", output::printable(&format!("{file} is not valid: {count}")));
                None
            }
        })
    }

    /// The spec with its warnings, or the errors that forbid it.
    pub fn parse(&self) -> Result<Result<(ServiceSpec, Report), Report>> {
        let options = self.read_options()?;
        let file = self.file.display().to_string();
        let text = read_limited(&self.file).with_context(|| format!("cannot read {file}"))?;
        let directory = self.file.parent().unwrap_or(Path::new(""));
        let template = |path: &str| read_limited(&directory.join(path)).map_err(|error| format!("{error:#}"));
        let env = options.environment(environment());
        Ok(parse(Input { file: &file, text: &text, env: &env, template: &template }))
    }

    /// The spec that a client sends, with the environment of this process. Its templates are those that were sent.
    pub fn parse_upload(&self, upload: &Upload) -> Result<Result<(ServiceSpec, Report), Report>> {
        let options = match &upload.options {
            Some(text) => parse_options("options", text)?,
            None => self.read_options()?,
        };
        let template = |path: &str| {
            let sent = upload.templates.get(path).filter(|text| text.len() <= RENDERED_BYTES_MAX);
            sent.cloned()
                .ok_or_else(|| format!("it is not part of the upload, or exceeds {RENDERED_BYTES_MAX} bytes"))
        };
        let env = options.environment(environment());
        Ok(parse(Input { file: &upload.file, text: &upload.spec, env: &env, template: &template }))
    }

    /// The files to send. Which templates there are follows from the spec, rendered with the environment of this process.
    pub fn upload(&self) -> Result<Upload> {
        let file = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned();
        let shown = self.file.display();
        let spec = read_limited(&self.file).with_context(|| format!("cannot read {shown}"))?;
        let read_text =
            |path: &PathBuf| read_limited(path).with_context(|| format!("cannot read {}", path.display()));
        let options = self.options.as_ref().map(read_text).transpose()?;
        let env = self.read_options()?.environment(environment());
        let directory = self.file.parent().unwrap_or(Path::new(""));
        let templates = RefCell::new(BTreeMap::new());
        let template = |path: &str| {
            let text = read_limited(&directory.join(path)).map_err(|error| format!("{error:#}"))?;
            templates.borrow_mut().insert(path.to_owned(), text.clone());
            Ok(text)
        };
        // Errors are found by the scheduler, whose environment counts.
        drop(parse(Input { file: &file, text: &spec, env: &env, template: &template }));
        Ok(Upload { file, spec, templates: templates.into_inner(), options })
    }

    pub fn read_options(&self) -> Result<Options> {
        let Some(path) = &self.options else { return Ok(Options::default()) };
        let shown = path.display();
        let text = read_limited(path).with_context(|| format!("cannot read {shown}"))?;
        parse_options(&shown.to_string(), &text)
    }
}

fn parse_options(shown: &str, text: &str) -> Result<Options> {
    Options::parse(text).map_err(|problems| anyhow::anyhow!("{shown} is not valid\n{}", problems.join("\n")))
}

/// A file within the limit of templates.
fn read_limited(path: &Path) -> Result<String> {
    let mut text = String::new();
    let limit = RENDERED_BYTES_MAX as u64;
    File::open(path)?.take(limit + 1).read_to_string(&mut text)?;
    anyhow::ensure!(text.len() as u64 <= limit, "the file exceeds {limit} bytes");
    Ok(text)
}

/// Variables whose names and values are texts. A spec is readable by the operators of its service, so the secret of this
/// process is not among them.
pub fn environment() -> BTreeMap<String, String> {
    readable(std::env::vars_os())
}

fn readable(variables: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let texts =
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| name != SECRET_VARIABLE).collect()
}

fn print_problems(report: &Report) {
    for line in report.to_string().lines() {
        eprintln!("{}", output::printable(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_of_the_process_is_not_rendered_into_specs() {
        let pairs = [("PORT", "80"), (SECRET_VARIABLE, "s3cret"), ("TEPUI_MASTER", "h:1")];
        let env = readable(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(env.keys().map(String::as_str).collect::<Vec<_>>(), ["PORT", "TEPUI_MASTER"]);
    }
}
