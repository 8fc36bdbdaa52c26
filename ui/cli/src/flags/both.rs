//! Flags of both programs: listen address and logging.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use tepui_log::LogFormat;
use tepui_shell_master::BrowserPolicy;

use super::access::local;
use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct AddressFlags {
    /// Address to listen on [default: 127.0.0.1].
    #[arg(long)]
    pub ip: Option<IpAddr>,
    /// Shell command that prints the address to listen on.
    #[arg(long, conflicts_with = "ip")]
    pub ip_discovery_command: Option<String>,
    /// Address to advertise, if different from the address listened on.
    #[arg(long)]
    pub advertise_ip: Option<IpAddr>,
    /// Port to advertise, if different from the port listened on.
    #[arg(long)]
    pub advertise_port: Option<u16>,
    /// Hostname to advertise [default: `localhost` on loopback, else the address].
    #[arg(long)]
    pub hostname: Option<String>,
    /// Accepted for compatibility: hostnames are not looked up.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub hostname_lookup: bool,
}

/// What requests of browsers may do, on both programs.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct BrowserFlags {
    /// Additional values of the HTTP `Host` header: names, addresses, `.domain` for all names below a domain,
    /// or `*` for any. Requests for other hosts are rejected [default: own name, own addresses, loopback].
    #[arg(long)]
    pub allowed_hosts: Option<String>,
    /// Serve `?jsonp=` requests, which allows any web page to read documents.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub jsonp: bool,
}

impl BrowserFlags {
    pub fn policy(&self) -> Result<BrowserPolicy> {
        let hosts = self.allowed_hosts.as_deref().map(value::list).unwrap_or_default();
        BrowserPolicy::new(&hosts, self.jsonp).map_err(|reason| anyhow!("--allowed_hosts: {reason}"))
    }
}

impl AddressFlags {
    /// The address to listen on.
    pub fn listen(&self) -> Result<IpAddr> {
        match (&self.ip, &self.ip_discovery_command) {
            (Some(ip), _) => Ok(*ip),
            (None, Some(command)) => discover(command).context("--ip_discovery_command"),
            (None, None) => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        }
    }

    /// The advertised name for `ip`, unless it is looked up.
    pub fn name(&self, ip: IpAddr) -> Option<String> {
        self.hostname.clone().or_else(|| (!self.hostname_lookup).then(|| ip.to_string()))
    }
}

fn discover(command: &str) -> Result<IpAddr> {
    let output = Command::new("sh").args(["-c", command]).output().context("cannot start sh")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{command}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    printed
        .trim()
        .parse()
        .map_err(|_| anyhow!("{command} printed {:?}, which is not an address", printed.trim()))
}

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct LoggingFlags {
    /// Minimum severity of log messages: DEBUG, INFO, WARNING or ERROR.
    #[arg(long, default_value = "INFO", ignore_case = true, value_parser = ["DEBUG", "INFO", "WARNING", "ERROR"])]
    pub logging_level: String,
    /// Format of log lines: `text`, or `json` with one object per line.
    #[arg(long, default_value = "text", value_enum)]
    pub log_format: FormatFlag,
    /// Log file written by another process, made available to operators through the API.
    #[arg(long)]
    pub external_log_file: Option<PathBuf>,
    /// Directory of the log file `mesos-master.INFO` or `mesos-agent.INFO`, named after the level; readable
    /// through the API.
    #[arg(long)]
    pub log_dir: Option<PathBuf>,
    /// Do not log to standard error.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub quiet: bool,
}

/// Where the trail of calls is written, on both programs.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct AuditFlags {
    /// Audit log file: a JSON line for every rejected login and every call that changes state, with
    /// principal, address, entity and outcome; reopened after rotation [default: none].
    #[arg(long)]
    pub audit_log: Option<PathBuf>,
}

impl AuditFlags {
    pub fn file(&self) -> Option<PathBuf> {
        self.audit_log.as_deref().map(local)
    }
}

/// The values of `--log_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatFlag {
    Text,
    Json,
}

impl From<FormatFlag> for LogFormat {
    fn from(flag: FormatFlag) -> Self {
        match flag {
            FormatFlag::Text => LogFormat::Text,
            FormatFlag::Json => LogFormat::Json,
        }
    }
}

impl LoggingFlags {
    /// The file that a program of this name writes its log to.
    pub fn own_file(&self, program: &str) -> Option<PathBuf> {
        let name = format!("mesos-{program}.{}", self.logging_level.to_uppercase());
        self.log_dir.as_deref().map(|folder| local(folder).join(name))
    }
}
