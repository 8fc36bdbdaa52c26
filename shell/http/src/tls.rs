//! TLS: the certificate we show, and whom we trust.
//!
//! One provider, named here and nowhere else, so that another can take its place. Never here: files of secrets in
//! memory longer than it takes to read them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Where certificates and keys are, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Ours and those that vouch for it.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Whom we trust; needed to reach others and to check their certificates.
    pub ca: Option<PathBuf>,
    /// Whether who connects must show a certificate.
    pub verify_clients: bool,
}

/// What a program needs to be reached and to reach others. A cheap clone.
#[derive(Clone)]
pub struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    connector: Option<TlsConnector>,
}

impl Tls {
    pub fn load(files: &TlsFiles) -> Result<Self, String> {
        let chain = certificates(&files.cert)?;
        let roots = files.ca.as_deref().map(roots).transpose()?.map(Arc::new);
        let server = server(files, chain.clone(), roots.clone())?;
        let connector = match roots {
            Some(roots) => Some(TlsConnector::from(Arc::new(client(files, chain, roots)?))),
            None => None,
        };
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(server)), connector })
    }

    /// Speaks TLS on a connection to `host`.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let connector = self.connector.as_ref().ok_or("--tls_ca is missing: it says whom to trust")?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|err| err.to_string())?;
        connector.connect(name, stream).await.map_err(|err| err.to_string())
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

fn server(
    files: &TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    roots: Option<Arc<RootCertStore>>,
) -> Result<ServerConfig, String> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(text)?;
    let builder = match (roots, files.verify_clients) {
        (Some(roots), true) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            builder.with_client_cert_verifier(verifier.build().map_err(text)?)
        }
        (None, true) => return Err("--tls_ca is missing: it says whose certificates count".to_owned()),
        (_, false) => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key(&files.key)?).map_err(text)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn client(
    files: &TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(text)?;
    builder.with_root_certificates(roots).with_client_auth_cert(chain, key(&files.key)?).map_err(text)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|err| format!("cannot read {}: {err}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("{} holds no certificate", path.display())),
        false => Ok(found),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|err| format!("{}: {err}", path.display()))?;
    }
    Ok(roots)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|err| format!("cannot read the key {}: {err}", path.display()))
}

fn text(err: impl std::fmt::Display) -> String {
    err.to_string()
}
