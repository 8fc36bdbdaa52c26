//! TLS of the manager: one certificate and one set of trusted issuers for both roles, as in classic Swarm.
//!
//! With `--tlsverify` clients must show a certificate and engines are verified; with `--tls` alone neither is.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use tepui_swarm::TlsPaths;

#[derive(Clone, Debug)]
pub(crate) struct Tls {
    /// For listeners.
    pub server: Arc<ServerConfig>,
    /// Towards engines and the leading manager.
    pub client: Arc<ClientConfig>,
}

impl Tls {
    /// The texts of errors are those of classic Swarm.
    pub fn load(paths: &TlsPaths) -> Result<Tls, String> {
        let pair = |why: String| {
            format!("Couldn't load X509 key pair ({}, {}): {why}. Key encrypted?", paths.cert, paths.key)
        };
        let chain = certificates(&paths.cert).map_err(pair)?;
        let key = PrivateKeyDer::from_pem_file(&paths.key).map_err(|err| pair(err.to_string()))?;
        let roots = match &paths.ca {
            Some(path) => {
                Some(Arc::new(roots(path).map_err(|why| format!("Couldn't read CA certificate: {why}"))?))
            }
            None => None,
        };
        let server = server(chain.clone(), key.clone_key(), roots.clone()).map_err(pair)?;
        let client = client(chain, key, roots).map_err(pair)?;
        Ok(Tls { server: Arc::new(server), client: Arc::new(client) })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Option<Arc<RootCertStore>>,
) -> Result<ServerConfig, String> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(text)?;
    let builder = match roots {
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            builder.with_client_cert_verifier(verifier.build().map_err(text)?)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(text)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn client(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Option<Arc<RootCertStore>>,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(text)?;
    let builder = match roots {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider()))),
    };
    builder.with_client_auth_cert(chain, key).map_err(text)
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => Err(format!("{path} holds no certificate")),
        Ok(found) => Ok(found),
        Err(err) => Err(err.to_string()),
    }
}

fn roots(path: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(text)?;
    }
    Ok(roots)
}

fn text(err: impl std::fmt::Display) -> String {
    err.to_string()
}

/// Takes any certificate: what `--tls` without `--tlsverify` means. That the peer has the key of it is still checked.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
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
