//! Decoded `name=value` pairs of a URL or a form.

use std::collections::BTreeMap;

/// The query of a URL, decoded. Of keys given twice the last wins.
#[derive(Clone, Debug, Default)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    pub fn parse(text: impl AsRef<[u8]>) -> Self {
        Self(form_urlencoded::parse(text.as_ref()).into_owned().collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}
