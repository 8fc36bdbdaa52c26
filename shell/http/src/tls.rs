//! TLS: our certificate, and the trusted ones.
//!
//! The files are checked at each new connection: a renewed certificate is used for every connection after that,
//! without a restart. Invalid files, or files that do not belong together yet, change nothing. One provider, named
//! only here, so that it can be replaced. Absent: files of secrets in memory longer than it takes to read them.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
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
    /// Trusted certificates; needed for connections to others and to check client certificates.
    pub ca: Option<PathBuf>,
    /// Whether clients must show a certificate.
    pub verify_clients: bool,
}

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    #[error("--tls_ca is missing: required to verify certificates")]
    NoAuthorities,
    #[error("cannot read {}: {err}", path.display())]
    Certificates { path: PathBuf, err: PemError },
    #[error("{} contains no certificate", .0.display())]
    Empty(PathBuf),
    #[error("{}: {err}", path.display())]
    Authority { path: PathBuf, err: rustls::Error },
    #[error("cannot read the key {}: {err}", path.display())]
    Key { path: PathBuf, err: PemError },
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
    #[error(transparent)]
    Config(#[from] rustls::Error),
    #[error(transparent)]
    Name(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Connect(#[from] io::Error),
}

/// What a program needs to be reached and to reach others. A cheap clone.
#[derive(Clone)]
pub struct Tls {
    keys: Arc<Followed<Keys>>,
}

/// How to reach others, without being reached. A cheap clone.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<Followed<Arc<ClientConfig>>>,
}

#[derive(Clone)]
struct Keys {
    acceptor: TlsAcceptor,
    connector: Option<TlsConnector>,
}

impl Tls {
    pub fn load(files: &TlsFiles) -> Result<Self, TlsFault> {
        let paths = [Some(&files.cert), Some(&files.key), files.ca.as_ref()];
        let (paths, files) = (paths.into_iter().flatten().cloned(), files.clone());
        let keys = Followed::load(paths.collect(), move || Keys::load(&files))?;
        Ok(Self { keys: Arc::new(keys) })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.keys.newest().acceptor
    }

    /// Speaks TLS on a connection to `host`.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, TlsFault> {
        let connector = self.keys.newest().connector;
        let connector = connector.ok_or(TlsFault::NoAuthorities)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(connector.connect(ServerName::try_from(host)?, stream).await?)
    }
}

impl ClientTls {
    /// Trusts certificates that `ca` has signed; a certificate and key of our own are shown on request.
    pub fn load(ca: &Path, own: Option<(&Path, &Path)>) -> Result<Self, TlsFault> {
        let own = own.map(|(cert, key)| (cert.to_owned(), key.to_owned()));
        let (ca, mut paths) = (ca.to_owned(), vec![ca.to_owned()]);
        paths.extend(own.iter().flat_map(|(cert, key)| [cert.clone(), key.clone()]));
        let load =
            move || client_config(&ca, own.as_ref().map(|(cert, key)| (&**cert, &**key))).map(Arc::new);
        Ok(Self { config: Arc::new(Followed::load(paths, load)?) })
    }

    /// The same one until the files change.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.newest()
    }
}

/// What is made of some files, and made anew when they change.
pub struct Followed<K> {
    paths: Vec<PathBuf>,
    load: Box<dyn Fn() -> Result<K, String> + Send + Sync>,
    current: Mutex<Current<K>>,
}

/// What was read last, and of which files.
struct Current<K> {
    keys: K,
    versions: Vec<Version>,
    /// An invalid change that was logged.
    refused: Option<Vec<Version>>,
    looked: Instant,
}

/// Of a file its inode, its size and when it was changed; none if it is not there.
type Version = Option<(u64, u64, i64, i64)>;

impl<K: Clone> Followed<K> {
    /// `paths`: the files that `load` reads.
    pub fn load<E: std::fmt::Display>(
        paths: Vec<PathBuf>,
        load: impl Fn() -> Result<K, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        // Taken first: what changes while the files are read is noticed at the next look.
        let versions = versions(&paths);
        let current = Current { keys: load()?, versions, refused: None, looked: Instant::now() };
        let load = Box::new(move || load().map_err(|err| err.to_string()));
        Ok(Self { paths, load, current: Mutex::new(current) })
    }

    /// The newest that make sense.
    pub fn newest(&self) -> K {
        let mut current = self.current.lock().expect("no code panics while it holds this lock");
        if current.looked.elapsed() >= LOOK_PAUSE {
            current.looked = Instant::now();
            self.reload_changed(&mut current);
        }
        current.keys.clone()
    }

    fn reload_changed(&self, current: &mut Current<K>) {
        let found = versions(&self.paths);
        if found == current.versions {
            return;
        }
        match (self.load)() {
            Ok(keys) => {
                let first = self.paths.first().map(|path| path.display().to_string());
                tracing::info!(file = first, "TLS certificates reloaded");
                (current.keys, current.versions, current.refused) = (keys, found, None);
            }
            Err(why) if current.refused.as_ref() != Some(&found) => {
                tracing::warn!(why, "cannot reload TLS certificates");
                current.refused = Some(found);
            }
            Err(_) => (),
        }
    }
}

fn versions(paths: &[PathBuf]) -> Vec<Version> {
    let version = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    };
    paths.iter().map(version).collect()
}

impl Keys {
    fn load(files: &TlsFiles) -> Result<Self, TlsFault> {
        let roots = files.ca.as_deref().map(roots).transpose()?.map(Arc::new);
        let server = server(files, certificates(&files.cert)?, roots)?;
        let own = Some((&*files.cert, &*files.key));
        let client = files.ca.as_deref().map(|ca| client_config(ca, own)).transpose()?;
        let connector = client.map(|config| TlsConnector::from(Arc::new(config)));
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(server)), connector })
    }
}

impl<K> std::fmt::Debug for Followed<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Followed").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls").finish_non_exhaustive()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

fn server(
    files: &TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    roots: Option<Arc<RootCertStore>>,
) -> Result<ServerConfig, TlsFault> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match (roots, files.verify_clients) {
        (Some(roots), true) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            builder.with_client_cert_verifier(verifier.build()?)
        }
        (None, true) => return Err(TlsFault::NoAuthorities),
        (_, false) => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key(&files.key)?)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// For connections to servers with certificates that `ca` has signed, with a certificate and key of our own on
/// request.
fn client_config(ca: &Path, own: Option<(&Path, &Path)>) -> Result<ClientConfig, TlsFault> {
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(roots(ca)?);
    match own {
        Some((cert, path)) => Ok(builder.with_client_auth_cert(certificates(cert)?, key(path)?)?),
        None => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|err| TlsFault::Certificates { path: path.to_owned(), err })?;
    match found.is_empty() {
        true => Err(TlsFault::Empty(path.to_owned())),
        false => Ok(found),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|err| TlsFault::Authority { path: path.to_owned(), err })?;
    }
    Ok(roots)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    PrivateKeyDer::from_pem_file(path).map_err(|err| TlsFault::Key { path: path.to_owned(), err })
}
