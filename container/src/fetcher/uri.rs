//! URIs: what may be fetched, from where, and under which name it lands in the sandbox.

use std::path::{Path, PathBuf};

use tepui_proto::mesos::v1::command_info::URI;

use super::fault::UriFault;
use super::job::{Item, Source};
use crate::host::beneath;

/// One URI that passed all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub item: Item,
    pub source: Source,
    pub cache: bool,
}

/// Checks one URI.
pub(super) fn check(uri: &URI, frameworks_home: Option<&Path>) -> Result<Wanted, UriFault> {
    if uri.value.is_empty() || uri.value.contains(['\\', '\'', '\0', '\n']) {
        return Err(UriFault::Characters);
    }
    let source = source(&uri.value, frameworks_home)?;
    let name = match &uri.output_file {
        Some(name) => name.clone(),
        None => uri.value.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    if !beneath::is_inner(Path::new(&name)) || name.contains(['\\', '\'', '\0']) {
        return Err(match uri.output_file {
            Some(_) => UriFault::OutputFile,
            None => UriFault::NoFileName,
        });
    }
    let executable = uri.executable.unwrap_or(false);
    let item = Item {
        uri: uri.value.clone(),
        source: source.clone(),
        name,
        executable,
        extract: !executable && uri.extract.unwrap_or(true),
    };
    Ok(Wanted { item, source, cache: uri.cache.unwrap_or(false) })
}

fn source(uri: &str, frameworks_home: Option<&Path>) -> Result<Source, UriFault> {
    let absolute = |path: &str| match path.starts_with('/') {
        true => Ok(Source::Local(PathBuf::from(path))),
        false => Err(UriFault::RelativeFile),
    };
    let Some((scheme, rest)) = uri.split_once("://") else {
        return match frameworks_home {
            _ if uri.starts_with('/') => absolute(uri),
            Some(home) => Ok(Source::Local(home.join(uri))),
            None => Err(UriFault::NoFrameworksHome),
        };
    };
    match scheme.to_ascii_lowercase().as_str() {
        "file" => absolute(rest.strip_prefix("localhost").unwrap_or(rest)),
        "http" | "https"
            if rest.split_once('/').is_none_or(|(host, path)| host.is_empty() || path.is_empty()) =>
        {
            Err(UriFault::NoHostOrPath)
        }
        "http" | "https" => Ok(Source::Http(uri.to_owned())),
        other => Err(UriFault::Scheme(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(value: &str) -> URI {
        URI { value: value.to_owned(), ..Default::default() }
    }

    #[test]
    fn uri_determines_source_and_file_name() {
        for (value, source, name) in [
            ("/a/b.tgz", Source::Local("/a/b.tgz".into()), "b.tgz"),
            ("file:///a/b", Source::Local("/a/b".into()), "b"),
            ("file://localhost/a/b", Source::Local("/a/b".into()), "b"),
            ("rel/b", Source::Local("/home/rel/b".into()), "b"),
            ("http://h/x?sig=1", Source::Http("http://h/x?sig=1".into()), "x?sig=1"),
            ("HTTPS://h:8/x/y", Source::Http("HTTPS://h:8/x/y".into()), "y"),
        ] {
            let wanted = check(&uri(value), Some(Path::new("/home"))).expect(value);
            assert_eq!((wanted.source, wanted.item.name.as_str()), (source, name), "{value}");
        }
    }

    #[test]
    fn invalid_uris_are_rejected() {
        for (bad, fault) in [
            ("", UriFault::Characters),
            ("a\\b", UriFault::Characters),
            ("/a'b", UriFault::Characters),
            ("/a\nb", UriFault::Characters),
            ("rel/b", UriFault::NoFrameworksHome),
            ("file://rel", UriFault::RelativeFile),
            ("http://h", UriFault::NoHostOrPath),
            ("http://h/", UriFault::NoHostOrPath),
            ("http:///x", UriFault::NoHostOrPath),
            ("http://h/a/", UriFault::NoFileName),
            ("http://h/..", UriFault::NoFileName),
            ("ftp://h/x", UriFault::Scheme("ftp".into())),
            ("hdfs://h/x", UriFault::Scheme("hdfs".into())),
            ("/", UriFault::NoFileName),
            ("/a/..", UriFault::NoFileName),
        ] {
            assert_eq!(check(&uri(bad), None), Err(fault), "{bad}");
        }
        for output in ["", "/etc/passwd", "../x", "a/../../x", ".", "a/.."] {
            let uri = URI { output_file: Some(output.to_owned()), ..uri("/a/b") };
            assert_eq!(check(&uri, None), Err(UriFault::OutputFile), "{output}");
        }
    }
}
