//! TLS for clients: the trusted certificates of the whole process.
//!
//! Set once by [`trust`], or by `TEPUI_TLS_CA`, a file or the certificates themselves, as executors receive them (and
//! `TEPUI_TLS_CERT`, `TEPUI_TLS_KEY` for a client certificate). Once set, every connection is encrypted; without it
//! only those to `https://`, which are rejected because no certificate is trusted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

static CONNECTOR: OnceLock<Option<TlsConnector>> = OnceLock::new();

/// How certificates in PEM begin.
const PEM: &str = "-----BEGIN";

/// Files in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The trusted certificates, parsed and as PEM.
    pub ca: PathBuf,
    /// A certificate and its key to show, if peers ask for one.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustFault {
    #[error("cannot read {}: {err}", path.display())]
    Certificates { path: PathBuf, err: pem::Error },
    #[error("{} contains no certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("{}: {err}", path.display())]
    Issuer { path: PathBuf, err: rustls::Error },
    #[error("cannot read the key {}: {err}", path.display())]
    Key { path: PathBuf, err: pem::Error },
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

/// Sets the trusted certificates of this process. Only the first call counts.
pub fn trust(trust: &Trust) -> Result<(), TrustFault> {
    let connector = connector(trust)?;
    // Set already: by an earlier call, which counts.
    let _ = CONNECTOR.set(Some(connector));
    Ok(())
}

/// Whether connections are encrypted.
pub(crate) fn is_on() -> bool {
    of_process().is_some()
}

/// Speaks TLS on a connection to `host`.
pub(crate) async fn connect(host: &str, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
    let nobody = || std::io::Error::other("no CA certificates: set TEPUI_TLS_CA or --tls_ca");
    let connector = of_process().ok_or_else(nobody)?;
    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
    connector.connect(name, stream).await
}

fn of_process() -> Option<&'static TlsConnector> {
    CONNECTOR.get_or_init(from_environment).as_ref()
}

fn from_environment() -> Option<TlsConnector> {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let ca = path("TEPUI_TLS_CA")?;
    let trust = Trust { ca, own: path("TEPUI_TLS_CERT").zip(path("TEPUI_TLS_KEY")) };
    match connector(&trust) {
        Ok(connector) => Some(connector),
        Err(fault) => {
            tracing::error!(why = %fault, "TEPUI_TLS_CA cannot be used");
            None
        }
    }
}

fn connector(trust: &Trust) -> Result<TlsConnector, TrustFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&trust.ca)? {
        roots.add(certificate).map_err(|err| TrustFault::Issuer { path: trust.ca.clone(), err })?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(roots);
    let config = match &trust.own {
        Some((cert, key)) => {
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|err| TrustFault::Key { path: key.clone(), err })?;
            builder.with_client_auth_cert(certificates(cert)?, key)?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustFault> {
    let read = match path.to_str().filter(|text| text.starts_with(PEM)) {
        Some(text) => CertificateDer::pem_slice_iter(text.as_bytes()).collect(),
        None => CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>),
    };
    let found = read.map_err(|err| TrustFault::Certificates { path: path.to_owned(), err })?;
    match found.is_empty() {
        true => Err(TrustFault::NoCertificate(path.to_owned())),
        false => Ok(found),
    }
}

/// Accepts any certificate whose key the peer has, for connections that verify no identity.
#[derive(Debug)]
pub struct AnyCertificate(Arc<CryptoProvider>);

impl Default for AnyCertificate {
    fn default() -> Self {
        Self(Arc::new(default_provider()))
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
