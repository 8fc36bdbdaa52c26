//! TLS: the certificate we show, and whom we trust.
//!
//! The files are looked at again when somebody connects: a certificate that is renewed counts for every connection
//! after that, without a restart. Files that make no sense, or do not belong together yet, change nothing.
//!
//! One provider, named here and nowhere else, so that another can take its place. Never here: files of secrets in
//! memory longer than it takes to read them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Between two looks at the files.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

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
    files: Arc<TlsFiles>,
    current: Arc<Mutex<Current>>,
}

/// What was read last, and of which files.
struct Current {
    keys: Keys,
    versions: Versions,
    /// A change that made no sense and was told of.
    refused: Option<Versions>,
    looked: Instant,
}

#[derive(Clone)]
struct Keys {
    acceptor: TlsAcceptor,
    connector: Option<TlsConnector>,
}

/// Of each file its inode, its size and when it was changed; none if it is not there.
type Versions = [Option<(u64, u64, i64, i64)>; 3];

impl Tls {
    pub fn load(files: &TlsFiles) -> Result<Self, String> {
        // Taken first: what changes while the files are read is noticed at the next look.
        let versions = versions(files);
        let current = Current { keys: Keys::load(files)?, versions, refused: None, looked: Instant::now() };
        Ok(Self { files: Arc::new(files.clone()), current: Arc::new(Mutex::new(current)) })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.keys().acceptor
    }

    /// The newest that make sense.
    fn keys(&self) -> Keys {
        let mut current = self.current.lock().expect("no code panics while it holds this lock");
        if current.looked.elapsed() >= LOOK_PAUSE {
            current.looked = Instant::now();
            current.look(&self.files);
        }
        current.keys.clone()
    }

    /// Speaks TLS on a connection to `host`.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let connector = self.keys().connector.ok_or("--tls_ca is missing: it says whom to trust")?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|err| err.to_string())?;
        connector.connect(name, stream).await.map_err(|err| err.to_string())
    }
}

impl Current {
    fn look(&mut self, files: &TlsFiles) {
        let found = versions(files);
        if found == self.versions {
            return;
        }
        match Keys::load(files) {
            Ok(keys) => {
                tracing::info!(cert = %files.cert.display(), "new connections use the new certificate");
                (self.keys, self.versions, self.refused) = (keys, found, None);
            }
            Err(why) if self.refused != Some(found) => {
                tracing::warn!(why, "the changed files of TLS are not used");
                self.refused = Some(found);
            }
            Err(_) => (),
        }
    }
}

impl Keys {
    fn load(files: &TlsFiles) -> Result<Self, String> {
        let roots = files.ca.as_deref().map(roots).transpose()?.map(Arc::new);
        let server = server(files, certificates(&files.cert)?, roots)?;
        let own = Some((&*files.cert, &*files.key));
        let client = files.ca.as_deref().map(|ca| client_config(ca, own)).transpose()?;
        let connector = client.map(|config| TlsConnector::from(Arc::new(config)));
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(server)), connector })
    }
}

fn versions(files: &TlsFiles) -> Versions {
    let version = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    };
    [version(&files.cert), version(&files.key), files.ca.as_deref().and_then(version)]
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

/// How to reach others whose certificates `ca` vouches for, with a certificate and key of our own if they ask.
pub fn client_config(ca: &Path, own: Option<(&Path, &Path)>) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(text)?;
    let builder = builder.with_root_certificates(roots(ca)?);
    match own {
        Some((cert, path)) => builder.with_client_auth_cert(certificates(cert)?, key(path)?).map_err(text),
        None => Ok(builder.with_no_client_auth()),
    }
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
