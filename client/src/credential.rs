//! Credentials of a client: the value of the `Authorization` header.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// A proof of identity. Its secret never appears in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// Principal and secret, as HTTP Basic.
    Basic { principal: String, secret: String },
    /// A token, as given to executors in `MESOS_EXECUTOR_AUTHENTICATION_TOKEN`.
    Bearer(String),
}

impl Credential {
    pub(crate) fn header(&self) -> String {
        match self {
            Credential::Basic { principal, secret } => {
                format!("Basic {}", BASE64_STANDARD.encode(format!("{principal}:{secret}")))
            }
            Credential::Bearer(token) => format!("Bearer {token}"),
        }
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Credential::Basic { principal, .. } => write!(f, "Basic({principal})"),
            Credential::Bearer(_) => f.write_str("Bearer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_become_authorization_headers() {
        let basic = Credential::Basic { principal: "ops".into(), secret: "s3cret".into() };
        assert_eq!(basic.header(), "Basic b3BzOnMzY3JldA==");
        assert_eq!(format!("{basic:?}"), "Basic(ops)");
        assert_eq!(Credential::Bearer("t".into()).header(), "Bearer t");
    }
}
