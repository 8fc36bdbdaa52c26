//! Flags about TLS, which both programs have, and the rule about addresses that others can reach.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use tepui_shell_master::{Tls, TlsFiles};

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct TlsFlags {
    /// Server certificate with its chain (PEM); enables TLS and disables plain HTTP.
    #[arg(long, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of --tls_cert (PEM).
    #[arg(long, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// CA certificates (PEM) that verify the master, the agent (for executors) and clients.
    #[arg(long)]
    pub tls_ca: Option<PathBuf>,
    /// Require client certificates.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub tls_verify_clients: bool,
    /// Permit listening on a non-loopback address without TLS or authentication.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub allow_insecure: bool,
}

impl TlsFlags {
    pub fn load(&self) -> Result<Option<Tls>> {
        let (Some(cert), Some(key)) = (self.tls_cert.clone(), self.tls_key.clone()) else { return Ok(None) };
        let files = TlsFiles { cert, key, ca: self.tls_ca.clone(), verify_clients: self.tls_verify_clients };
        Ok(Some(Tls::load(&files).map_err(|reason| anyhow::anyhow!("TLS: {reason}"))?))
    }

    /// Rejects a non-loopback address without TLS and authentication, unless `--allow_insecure` is set.
    pub fn check_address(&self, ip: IpAddr, is_authenticated: bool) -> Result<()> {
        if ip.is_loopback() || self.allow_insecure {
            return Ok(());
        }
        let missing = match (self.tls_cert.is_some(), is_authenticated) {
            (true, true) => return Ok(()),
            (false, true) => "without TLS (--tls_cert, --tls_key) secrets are readable on the network",
            (true, false) => {
                "without authentication every client that can connect can run commands on the cluster"
            }
            (false, false) => {
                "without TLS and authentication every client that can connect can run commands on the cluster"
            }
        };
        bail!(
            "--ip={ip} can be reached from other machines, and {missing}; if that is meant, add --allow_insecure"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insecure_listening_requires_allow_insecure() {
        let flags = |cert: bool, allow_insecure: bool| TlsFlags {
            tls_cert: cert.then(PathBuf::new),
            tls_key: None,
            tls_ca: None,
            tls_verify_clients: false,
            allow_insecure,
        };
        for (ip, cert, authenticated, allowed, right) in [
            ("127.0.0.1", false, false, false, true),
            ("::1", false, false, false, true),
            ("0.0.0.0", false, false, false, false),
            ("10.0.0.1", true, false, false, false),
            ("10.0.0.1", false, true, false, false),
            ("10.0.0.1", true, true, false, true),
            ("0.0.0.0", false, false, true, true),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(
                flags(cert, allowed).check_address(ip, authenticated).is_ok(),
                right,
                "{ip} {cert} {authenticated}"
            );
        }
    }
}
