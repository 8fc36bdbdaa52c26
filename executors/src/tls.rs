//! HTTPS for health checks. A check connects to its own task on the loopback interface, so no certificate is verified.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls::crypto::ring;
use tepui_client::tls::AnyCertificate;

/// Connects with or without TLS, depending on the URI's scheme.
pub fn connector() -> HttpsConnector<HttpConnector> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate::default()))
        .with_no_client_auth();
    HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build()
}
