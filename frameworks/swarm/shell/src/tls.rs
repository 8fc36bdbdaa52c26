//! TLS of the manager: one certificate and one set of trusted issuers for both roles, as in classic Swarm.
//!
//! With `--tlsverify` clients must show a certificate and engines are verified; with `--tls` alone neither is.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tepui_client::tls::AnyCertificate;
use tepui_http::Followed;
use tepui_swarm::TlsPaths;

/// The texts are those of classic Swarm.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    #[error("Couldn't load X509 key pair ({cert}, {key}): {fault}. Key encrypted?")]
    KeyPair { cert: String, key: String, fault: CertificateFault },
    #[error("Couldn't read CA certificate: {0}")]
    Ca(CertificateFault),
}

#[derive(Debug, thiserror::Error)]
pub enum CertificateFault {
    #[error("{0} holds no certificate")]
    None(String),
    #[error(transparent)]
    Pem(#[from] pem::Error),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
}

/// The certificates in use: files that are replaced are used for every connection after that. A cheap clone.
#[derive(Clone, Debug)]
pub struct Tls {
    keys: Arc<Followed<Keys>>,
}

#[derive(Clone, Debug)]
struct Keys {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Tls {
    pub(crate) fn load(paths: &TlsPaths) -> Result<Tls, TlsFault> {
        let files = [Some(&paths.cert), Some(&paths.key), paths.ca.as_ref()];
        let (files, paths) = (files.into_iter().flatten().map(PathBuf::from).collect(), paths.clone());
        Ok(Tls { keys: Arc::new(Followed::load(files, move || Keys::load(&paths))?) })
    }

    /// For listeners.
    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        self.keys.newest().server
    }

    /// Towards engines and the leading manager.
    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        self.keys.newest().client
    }
}

impl Keys {
    fn load(paths: &TlsPaths) -> Result<Keys, TlsFault> {
        let pair = |fault| TlsFault::KeyPair { cert: paths.cert.clone(), key: paths.key.clone(), fault };
        let chain = certificates(&paths.cert).map_err(pair)?;
        let key = PrivateKeyDer::from_pem_file(&paths.key).map_err(|err| pair(err.into()))?;
        let roots = paths.ca.as_deref().map(roots).transpose().map_err(TlsFault::Ca)?.map(Arc::new);
        let server = server(chain.clone(), key.clone_key(), roots.clone()).map_err(pair)?;
        let client = client(chain, key, roots).map_err(pair)?;
        Ok(Keys { server: Arc::new(server), client: Arc::new(client) })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Option<Arc<RootCertStore>>,
) -> Result<ServerConfig, CertificateFault> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match roots {
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            builder.with_client_cert_verifier(verifier.build()?)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn client(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Option<Arc<RootCertStore>>,
) -> Result<ClientConfig, CertificateFault> {
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match roots {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::default())),
    };
    Ok(builder.with_client_auth_cert(chain, key)?)
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, CertificateFault> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read? {
        found if found.is_empty() => Err(CertificateFault::None(path.to_owned())),
        found => Ok(found),
    }
}

fn roots(path: &str) -> Result<RootCertStore, CertificateFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}
