//! Images in a directory of the host: archives that `docker save` made, and OCI layouts, as directories or archives.
//!
//! `<name>.tar` or `<name>/`, with the name as it was written, or with its version. Blocking; reads only.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::blob::Blob;
use super::digest::Digest;
use super::fault::{DocumentFault, ImageFault};
use super::manifest::{Descriptor, Manifest};
use super::reference::Reference;
use super::tar::{Kind, Tar};

/// Files of one archive: a few for each layer.
const ARCHIVE_ENTRIES_MAX: usize = 10_000;
/// Indexes within indexes, and links to links.
const DEPTH_MAX: usize = 4;

const DOCKER_MANIFEST: &str = "manifest.json";
const OCI_INDEX: &str = "index.json";
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// An image that was found: everything it is made of, the lowest layer first.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub config: Blob,
    pub layers: Vec<Blob>,
}

/// Finds an image; the error lists the searched locations.
pub(super) fn find(dir: &Path, reference: &Reference) -> Result<Found, ImageFault> {
    let (name, full) = (reference.name(), reference.to_string());
    let version = |tag: &str| format!("{name}:{tag}");
    let written = reference.tag.as_deref().map_or_else(|| name.clone(), version);
    for candidate in [&written, &full, &name] {
        let (archive, layout) = (dir.join(format!("{candidate}.tar")), dir.join(candidate));
        let files = if archive.is_file() {
            Files::of_archive(&archive)
        } else if layout.join("oci-layout").is_file() {
            Ok(Files::Layout(layout.clone()))
        } else {
            continue;
        };
        return files.and_then(|files| files.image(reference)).map_err(|fault| ImageFault::InDirectory {
            image: full.clone(),
            directory: dir.to_owned(),
            fault: fault.into(),
        });
    }
    Err(ImageFault::NotFound { image: full, written, directory: dir.to_owned() })
}

/// Files by their names in an archive or a layout.
enum Files {
    Layout(PathBuf),
    Archive { path: PathBuf, entries: BTreeMap<PathBuf, Place> },
}

enum Place {
    Content { offset: u64, size: u64 },
    Link(PathBuf),
}

/// One image of `manifest.json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl Files {
    fn of_archive(path: &Path) -> Result<Files, ImageFault> {
        let file = File::open(path)?;
        let mut tar = Tar::new(BufReader::with_capacity(1 << 16, file));
        let mut entries = BTreeMap::new();
        while let Some(entry) = tar.next()? {
            let place = match entry.kind {
                Kind::File => Place::Content { offset: tar.position(), size: entry.size },
                // Relative to where it is, unless it is a hard link.
                Kind::Symlink => {
                    Place::Link(plain(&entry.path.parent().unwrap_or(Path::new("")).join(entry.link)))
                }
                Kind::HardLink => Place::Link(plain(&entry.link)),
                Kind::Directory | Kind::Character | Kind::Block | Kind::Fifo => continue,
            };
            entries.insert(plain(&entry.path), place);
            if entries.len() > ARCHIVE_ENTRIES_MAX {
                return Err(DocumentFault::TooManyFiles(ARCHIVE_ENTRIES_MAX).into());
            }
        }
        Ok(Files::Archive { path: path.to_owned(), entries })
    }

    fn image(&self, reference: &Reference) -> Result<Found, ImageFault> {
        match self.blob(DOCKER_MANIFEST) {
            Ok(manifest) => self.saved_image(&manifest.read(DOCKER_MANIFEST)?, reference),
            Err(_) => {
                let neither = |_| DocumentFault::NoManifest { docker: DOCKER_MANIFEST, oci: OCI_INDEX };
                let index = self.blob(OCI_INDEX).map_err(neither)?;
                self.oci_image(&index.read(OCI_INDEX)?, reference)
            }
        }
    }

    fn saved_image(&self, manifest: &[u8], reference: &Reference) -> Result<Found, ImageFault> {
        let all: Vec<Saved> = serde_json::from_slice(manifest)
            .map_err(|err| DocumentFault::Json { what: DOCKER_MANIFEST, err })?;
        let full = reference.to_string();
        let is_meant = |saved: &Saved| {
            saved.repo_tags.iter().flatten().filter_map(|tag| Reference::parse(tag).ok()).any(|tag| {
                tag.to_string() == full
                    || (tag.repository == reference.repository && tag.tag() == reference.tag())
            })
        };
        let saved = match all.as_slice() {
            [one] => one,
            several => several
                .iter()
                .find(|saved| is_meant(saved))
                .ok_or(DocumentFault::NoneCalledSo(several.len()))?,
        };
        let mut config = self.blob(&saved.config)?;
        // It is called by its digest, in one way or the other.
        let hex = Path::new(&saved.config).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        config.digest = Digest::of_hex(hex.trim_end_matches(".json")).ok();
        let layers = saved.layers.iter().map(|layer| self.blob(layer)).collect::<Result<_, _>>()?;
        Ok(Found { config, layers })
    }

    fn oci_image(&self, index: &[u8], reference: &Reference) -> Result<Found, ImageFault> {
        let index = Manifest::parse(index)?;
        let is_meant = |one: &&Descriptor| match (&reference.digest, one.annotations.get(REF_NAME)) {
            (Some(digest), _) => one.digest == *digest,
            (None, Some(name)) => name == reference.tag() || *name == reference.to_string(),
            (None, None) => false,
        };
        let named = index.manifests.iter().find(is_meant);
        let has_names = index.manifests.iter().any(|one| one.annotations.contains_key(REF_NAME));
        let mut descriptor = match named {
            Some(named) => named.clone(),
            None if has_names && index.manifests.len() > 1 => {
                return Err(DocumentFault::NoneCalled(reference.tag().to_owned()).into());
            }
            None => index.for_this_machine()?.clone(),
        };
        for _ in 0..DEPTH_MAX {
            let manifest = Manifest::parse(&self.addressed(&descriptor.digest)?.read("the manifest")?)?;
            let Some(config) = &manifest.config else {
                descriptor = manifest.for_this_machine()?.clone();
                continue;
            };
            let layers = manifest.layers.iter().map(|layer| self.addressed(&layer.digest));
            return Ok(Found {
                config: self.addressed(&config.digest)?,
                layers: layers.collect::<Result<_, _>>()?,
            });
        }
        Err(DocumentFault::IndexDepth(DEPTH_MAX).into())
    }

    fn addressed(&self, digest: &Digest) -> Result<Blob, ImageFault> {
        Ok(self.blob(&format!("blobs/sha256/{}", digest.hex()))?.with_digest(digest.clone()))
    }

    fn blob(&self, name: &str) -> Result<Blob, ImageFault> {
        let missing = || DocumentFault::Missing(name.to_owned());
        match self {
            Files::Layout(root) => {
                Blob::of_file(root.join(plain(Path::new(name)))).map_err(ImageFault::io(format!("'{name}'")))
            }
            Files::Archive { path, entries } => {
                let mut at = plain(Path::new(name));
                for _ in 0..DEPTH_MAX {
                    match entries.get(&at).ok_or_else(missing)? {
                        Place::Content { offset, size } => {
                            return Ok(Blob {
                                file: path.clone(),
                                offset: *offset,
                                size: *size,
                                digest: None,
                            });
                        }
                        Place::Link(to) => at = to.clone(),
                    }
                }
                Err(missing().into())
            }
        }
    }
}

/// A path below the root of the archive, `.` and `..` taken out: never above it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => (),
        }
    }
    plain
}
