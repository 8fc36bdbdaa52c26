//! `tepui swarm`: the Docker API for the whole cluster. Its command line is classic Swarm's, so it is not parsed by clap.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use tepui_client::tls::Trust;
use tepui_log::{LogFormat, Settings};
use tepui_swarm::{Command, HELP, Manage};
use tepui_swarm_shell::{Access, ClientTls};
use tracing::Level;

use super::{Cluster, Signals, block_on};
use crate::flags::access::warn_of_readable_secrets;
use crate::output;

/// Serve the Docker API for the whole cluster.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Swarm {
    /// `manage [OPTIONS] MASTER`; `tepui swarm --help` lists the options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Swarm {
    pub fn run(self) -> Result<ExitCode> {
        run(&self.words)
    }
}

/// The words behind `tepui swarm`.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let variable = |name: &str| std::env::var(name).ok();
    match Command::parse(words, variable).map_err(|error| anyhow!(error))? {
        Command::Help => output::line(HELP.trim_end())?,
        Command::Version => output::line(&format!("swarm version {} (tepui)", env!("CARGO_PKG_VERSION")))?,
        Command::Manage(manage) => return self::manage(manage),
    }
    Ok(ExitCode::SUCCESS)
}

/// With the credentials of the environment, like every other command.
fn access(manage: &Manage) -> Result<Access> {
    let cluster = Cluster::at(manage.master.clone());
    let etcd_tls = match cluster.trust() {
        Some(Trust { ca, own }) if manage.master.starts_with("etcds://") => {
            let own = own.as_ref().map(|(cert, key)| (cert.as_path(), key.as_path()));
            Some(ClientTls::load(&ca, own).map_err(|why| anyhow!("TEPUI_TLS_CA: {why}"))?)
        }
        Some(_) | None => None,
    };
    Ok(Access { credential: cluster.credential()?, etcd_tls })
}

fn manage(manage: Manage) -> Result<ExitCode> {
    let level = match manage.log_level.as_str() {
        "debug" => Level::DEBUG,
        "warn" => Level::WARN,
        "error" | "fatal" | "panic" => Level::ERROR,
        _ => Level::INFO,
    };
    // An error would mean that a log was started before, which nothing here does.
    let _set_level =
        tepui_log::start(Settings { format: LogFormat::default(), level, file: None, stderr: true })?;
    let key = manage.tls.iter().map(|tls| ("tlskey".to_owned(), tls.key.clone()));
    warn_of_readable_secrets(&key.collect::<Vec<_>>());
    // Every client and every engine is a connection.
    tepui_shell_master::raise_open_files();
    block_on(async {
        let access = access(&manage)?;
        let mut manager = tepui_swarm_shell::run(manage, access).await?;
        let mut signals = Signals::listen()?;
        output::notice(&format!("swarm listening on {}", manager.addresses().join(" ")));
        let fault = tokio::select! {
            () = signals.next() => None,
            fault = manager.ended() => Some(fault),
        };
        manager.stop().await?;
        match fault {
            None => Ok(ExitCode::SUCCESS),
            Some(fault) => Err(fault.into()),
        }
    })
}
