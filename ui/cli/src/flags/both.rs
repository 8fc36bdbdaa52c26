//! Flags that both programs have: where they listen, and what they write to their log.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct AddressFlags {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub ip: IpAddr,
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

impl AddressFlags {
    /// The name told to others, unless it is to be looked up.
    pub fn name(&self) -> Option<String> {
        self.hostname.clone().or_else(|| (!self.hostname_lookup).then(|| self.ip.to_string()))
    }
}

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct LoggingFlags {
    /// The least severe messages to write: DEBUG, INFO, WARNING or ERROR.
    #[arg(long, default_value = "INFO", ignore_case = true, value_parser = ["DEBUG", "INFO", "WARNING", "ERROR"])]
    pub logging_level: String,
    /// The file that the log is written to by whoever started us; operators may read it.
    #[arg(long)]
    pub external_log_file: Option<PathBuf>,
    /// Write nothing to the terminal.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub quiet: bool,
}
