//! The login that is shown to one registry.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// Credentials for a registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    /// `name:secret` in base64.
    Basic(String),
    /// To be exchanged for one that the registry takes.
    Token(String),
}

impl Login {
    pub(super) fn basic(name: &str, secret: &str) -> Login {
        Login::Basic(STANDARD.encode(format!("{name}:{secret}")))
    }

    /// What to show to a host; none of what has to be exchanged first.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let Login::Basic(auth) = self else { return None };
        let mut header = HeaderValue::try_from(format!("Basic {auth}")).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// The same as a name and a secret.
    pub(crate) fn pair(&self) -> Option<(String, String)> {
        let Login::Basic(auth) = self else { return None };
        let text = String::from_utf8(STANDARD.decode(auth).ok()?).ok()?;
        let (name, secret) = text.split_once(':')?;
        Some((name.to_owned(), secret.trim_end_matches('\0').to_owned()))
    }
}
