//! Names and secrets, as an operator wrote them into a file: `{"credentials":[{"principal":…,"secret":…}]}`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use subtle::ConstantTimeEq;
use tepui_proto::json;
use tepui_proto::mesos::v1 as pb;

type Digest = [u8; SHA256_OUTPUT_LEN];

/// Digests of secrets by name.
#[derive(Clone, Default)]
pub struct Credentials {
    by_name: BTreeMap<String, Digest>,
}

impl Credentials {
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let file: pb::Credentials = json::from_slice(text).map_err(|err| err.to_string())?;
        // A principal without a secret cannot authenticate.
        let with_secret = file.credentials.into_iter().filter(|one| one.secret.is_some());
        let by_name =
            with_secret.map(|one| (one.principal, digested(one.secret.as_deref().unwrap_or_default())));
        Ok(Self { by_name: by_name.collect() })
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether this is the secret of that name. Takes as long for a wrong secret as for a right one.
    pub fn hold(&self, name: &str, secret: &str) -> bool {
        let shown = digested(secret);
        let known = self.by_name.get(name);
        let same: bool = shown.ct_eq(known.unwrap_or(&[0; SHA256_OUTPUT_LEN])).into();
        same && known.is_some()
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.by_name.keys()).finish()
    }
}

/// One's own name and secret, to be shown to others. Its `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub principal: String,
    secret: String,
}

impl Credential {
    /// Reads `{"principal":…,"secret":…}`.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let one: pb::Credential = json::from_slice(text).map_err(|err| err.to_string())?;
        let secret = one.secret.ok_or("it has no secret")?;
        Ok(Self { principal: one.principal, secret })
    }

    /// The value of an `Authorization` header.
    pub fn header(&self) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", self.principal, self.secret)))
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({})", self.principal)
    }
}

fn digested(secret: &str) -> Digest {
    digest(&SHA256, secret.as_bytes()).as_ref().try_into().expect("the digest has its length")
}
