//! Names of images: `[host[:port]/]repository[:tag][@digest]`.

use std::fmt;

use super::digest::Digest;
use super::fault::ImageFault;

const TAG: &str = "latest";
const CHARS_MAX: usize = 512;

/// A name that holds nothing but what names may hold, so that it can be part of a path or a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub host: Option<String>,
    pub repository: String,
    pub tag: Option<String>,
    pub digest: Option<Digest>,
}

impl Reference {
    pub fn parse(text: &str) -> Result<Reference, ImageFault> {
        parse(text).ok_or_else(|| ImageFault::Name(text.to_owned()))
    }

    pub fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or(TAG)
    }

    /// The tag or digest of a manifest request.
    pub fn version(&self) -> String {
        self.digest.as_ref().map_or_else(|| self.tag().to_owned(), Digest::to_string)
    }

    /// Without version.
    pub fn name(&self) -> String {
        match &self.host {
            Some(host) => format!("{host}/{}", self.repository),
            None => self.repository.clone(),
        }
    }
}

/// With the default tag if it has none: the key of the image in the store.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.digest {
            Some(digest) => write!(f, "{}@{digest}", self.name()),
            None => write!(f, "{}:{}", self.name(), self.tag()),
        }
    }
}

fn parse(text: &str) -> Option<Reference> {
    if text.len() > CHARS_MAX {
        return None;
    }
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(Digest::parse(digest).ok()?)),
        None => (text, None),
    };
    // A colon before a slash is that of a port.
    let (rest, tag) = match rest.rsplit_once(':') {
        Some((rest, tag)) if !tag.contains('/') => (rest, Some(tag)),
        _ => (rest, None),
    };
    let (host, repository) = match rest.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (Some(first), rest),
        _ => (None, rest),
    };
    let fits = repository.split('/').all(|part| is_word(part, ""))
        && tag.is_none_or(|tag| is_word(tag, ""))
        && host.is_none_or(|host| is_word(host, ":[]"));
    fits.then(|| Reference {
        host: host.map(str::to_owned),
        repository: repository.to_owned(),
        tag: tag.map(str::to_owned),
        digest,
    })
}

/// Never `.` nor `..`.
fn is_word(text: &str, also: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') || also.contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || also.contains(c)) && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_references_are_parsed() {
        let hex = "a".repeat(64);
        for (text, full) in [
            ("alpine", "alpine:latest"),
            ("library/alpine:3.19", "library/alpine:3.19"),
            ("localhost/a", "localhost/a:latest"),
            ("127.0.0.1:5000/a/b:c", "127.0.0.1:5000/a/b:c"),
            (&format!("a:1@sha256:{hex}"), &format!("a@sha256:{hex}")),
        ] {
            assert_eq!(Reference::parse(text).expect("a name").to_string(), full);
        }
        let host = |text: &str| Reference::parse(text).expect("a name").host;
        assert_eq!(host("h.example:80/a").as_deref(), Some("h.example:80"));
        assert_eq!(host("a/b"), None);
        for bad in
            ["", "/", "/etc/passwd", "../x", "a/../b", "a//b", "a:", "a b", "a?b", "a@sha256:1", "a:.x", "."]
        {
            assert!(Reference::parse(bad).is_err(), "{bad}");
        }
    }
}
