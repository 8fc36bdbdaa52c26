//! Flags about reaching an etcd over TLS, which both programs have.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use tepui_shell_master::ClientTls;

use super::tls::TlsFlags;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct EtcdFlags {
    /// CA certificates for `etcds://` addresses (PEM) [default: --tls_ca].
    #[arg(long)]
    pub etcd_ca: Option<PathBuf>,
    /// Client certificate for etcd (PEM).
    #[arg(long, requires = "etcd_key")]
    pub etcd_cert: Option<PathBuf>,
    /// Private key of --etcd_cert (PEM).
    #[arg(long, requires = "etcd_cert")]
    pub etcd_key: Option<PathBuf>,
}

impl EtcdFlags {
    /// Trusted certificates, if `address` is one of an etcd over TLS.
    pub fn load(&self, address: &str, tls: &TlsFlags) -> Result<Option<ClientTls>> {
        if !address.starts_with("etcds://") {
            return Ok(None);
        }
        let ca = self.etcd_ca.as_ref().or(tls.tls_ca.as_ref());
        let ca = ca.ok_or_else(|| anyhow!("--etcd_ca is missing: required to verify etcd"))?;
        let own = self.etcd_cert.as_deref().zip(self.etcd_key.as_deref());
        let own: Option<(&Path, &Path)> = own;
        Ok(Some(ClientTls::load(ca, own).map_err(|reason| anyhow!("TLS to etcd: {reason}"))?))
    }
}
