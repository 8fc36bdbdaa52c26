//! Flags that both programs have: where they listen, and what they write to their log.

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
    /// A shell command that prints the address to listen on.
    #[arg(long, conflicts_with = "ip")]
    pub ip_discovery_command: Option<String>,
    /// Address told to others, if it is not the one listened on.
    #[arg(long)]
    pub advertise_ip: Option<IpAddr>,
    /// Port told to others.
    #[arg(long)]
    pub advertise_port: Option<u16>,
    /// Name told to others; the address if neither this nor a look-up gives one.
    #[arg(long)]
    pub hostname: Option<String>,
    /// Whether to look up the name of the address.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub hostname_lookup: bool,
}

/// What requests of browsers may do, on both programs.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct BrowserFlags {
    /// Further host names under which clients reach the program: names, addresses, `.domain` for every name below a
    /// domain, or `*` for any. Requests for other hosts are rejected [default: own name, own addresses, loopback].
    #[arg(long)]
    pub allowed_hosts: Option<String>,
    /// Serve documents as scripts to `?jsonp=` requests, which lets any web page read them.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub jsonp: bool,
}

impl BrowserFlags {
    pub fn policy(&self) -> Result<BrowserPolicy> {
        let hosts = self.allowed_hosts.as_deref().map(value::list).unwrap_or_default();
        BrowserPolicy::new(&hosts, self.jsonp).map_err(|why| anyhow!("--allowed_hosts: {why}"))
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

    /// The name told to others who listen on `ip`, unless it is to be looked up.
    pub fn name(&self, ip: IpAddr) -> Option<String> {
        self.hostname.clone().or_else(|| (!self.hostname_lookup).then(|| ip.to_string()))
    }
}

fn discover(command: &str) -> Result<IpAddr> {
    let output = Command::new("sh").args(["-c", command]).output().context("cannot start sh")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{command}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    said.trim().parse().map_err(|_| anyhow!("{command} printed {:?}, which is no address", said.trim()))
}

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct LoggingFlags {
    /// The least severe messages to write: DEBUG, INFO, WARNING or ERROR.
    #[arg(long, default_value = "INFO", ignore_case = true, value_parser = ["DEBUG", "INFO", "WARNING", "ERROR"])]
    pub logging_level: String,
    /// Format of log lines: `text`, or `json` with one object per line.
    #[arg(long, default_value = "text", value_enum)]
    pub log_format: FormatFlag,
    /// The file that the log is written to by whoever started us; operators may read it.
    #[arg(long)]
    pub external_log_file: Option<PathBuf>,
    /// A directory for a file of the log, `mesos-master.INFO` or `mesos-agent.INFO` by its level; operators may read it.
    #[arg(long)]
    pub log_dir: Option<PathBuf>,
    /// Write nothing to the terminal.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub quiet: bool,
}

/// Where the trail of calls is written, on both programs.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct AuditFlags {
    /// A file that gets an entry for refused logins and for every call that changes something: JSON lines with the
    /// principal, the address, the entity and the outcome. Opened again after its rotation [default: none].
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
