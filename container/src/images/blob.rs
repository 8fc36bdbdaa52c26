//! Blobs: pieces of files that hold a layer or a document, and reading them with all suspicion.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::digest::{Digest, Hashed};
use super::fault::{DocumentFault, ImageFault};
use super::unpack::{Form, unpack};
use super::zstd::{Zstd, is_zstd};

/// Documents are small.
const DOCUMENT_BYTES_MAX: u64 = 8 << 20;
/// Nothing worth having is compressed better; little may be.
const RATIO_MAX: u64 = 200;
const RATIO_FREE_BYTES: u64 = 64 << 20;

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z'];

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blob {
    pub file: PathBuf,
    pub offset: u64,
    pub size: u64,
    /// The expected digest, if there is one.
    pub digest: Option<Digest>,
}

impl Blob {
    pub fn of_file(path: PathBuf) -> io::Result<Blob> {
        let meta = std::fs::metadata(&path)?;
        if !meta.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        Ok(Blob { size: meta.len(), file: path, offset: 0, digest: None })
    }

    pub fn with_digest(self, digest: Digest) -> Blob {
        Blob { digest: Some(digest), ..self }
    }

    fn open(&self) -> io::Result<Take<File>> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.offset))?;
        Ok(file.take(self.size))
    }

    /// All of a document.
    pub fn read(&self, what: &str) -> Result<Vec<u8>, ImageFault> {
        if self.size > DOCUMENT_BYTES_MAX {
            let (what, bytes, bytes_max) = (what.to_owned(), self.size, DOCUMENT_BYTES_MAX);
            return Err(DocumentFault::TooLarge { what, bytes, bytes_max }.into());
        }
        let mut bytes = Vec::new();
        let read = self.open().and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(ImageFault::io(format!("cannot read {what}")))?;
        self.digest.as_ref().map_or(Ok(()), |digest| digest.check(what, &bytes))?;
        Ok(bytes)
    }

    /// Unpacks a layer into an empty directory. It must match both digests: the compressed and the uncompressed one.
    pub fn unpack(&self, diff_id: &Digest, root: &Path, form: Form) -> Result<(), ImageFault> {
        let reader = Inflated::new(self.open()?)?;
        let contents = unpack(Hashed::new(reader), root, form)?;
        // The reader stays ours: what follows the archive counts too, and so does what was read of the file.
        let (found, reader) = contents.finish_with()?;
        let compressed = reader.finish()?;
        if let Some(digest) = &self.digest {
            digest.compare("the layer", &compressed)?;
        }
        Ok(diff_id.compare("the layer", &found)?)
    }
}

/// A layer without its compression.
struct Inflated {
    source: Source,
    bytes: u64,
}

enum Source {
    Plain(BufReader<Hashed<Take<File>>>),
    Gzip(MultiGzDecoder<BufReader<Hashed<Take<File>>>>),
    Zstd(Box<Zstd<BufReader<Hashed<Take<File>>>>>),
}

impl Inflated {
    fn new(mut file: Take<File>) -> io::Result<Inflated> {
        let mut start = [0; 6];
        let position = file.get_mut().stream_position()?;
        let known = file.get_mut().read(&mut start)?;
        file.get_mut().seek(SeekFrom::Start(position))?;
        let reader = BufReader::with_capacity(1 << 16, Hashed::new(file));
        let source = match &start[..known] {
            start if start.starts_with(GZIP) => Source::Gzip(MultiGzDecoder::new(reader)),
            start if is_zstd(start) => Source::Zstd(Box::new(Zstd::new(reader))),
            start if start.starts_with(XZ) => {
                return Err(io::Error::other("the layer is compressed by xz; gzip and zstd are supported"));
            }
            _ => Source::Plain(reader),
        };
        Ok(Inflated { source, bytes: 0 })
    }

    fn reader(&self) -> &Hashed<Take<File>> {
        match &self.source {
            Source::Plain(reader) => reader.get_ref(),
            Source::Gzip(decoder) => decoder.get_ref().get_ref(),
            Source::Zstd(decoder) => decoder.get_ref().get_ref(),
        }
    }

    /// The digest of the file.
    fn finish(self) -> io::Result<Digest> {
        match self.source {
            Source::Plain(reader) => reader.into_inner().finish(),
            Source::Gzip(decoder) => decoder.into_inner().into_inner().finish(),
            Source::Zstd(decoder) => decoder.into_inner().into_inner().finish(),
        }
    }
}

impl Read for Inflated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.source {
            Source::Plain(reader) => reader.read(buffer)?,
            Source::Gzip(decoder) => decoder.read(buffer)?,
            Source::Zstd(decoder) => decoder.read(buffer)?,
        };
        self.bytes += read as u64;
        let allowed = self.reader().count().saturating_mul(RATIO_MAX).max(RATIO_FREE_BYTES);
        match self.bytes <= allowed {
            true => Ok(read),
            false => {
                Err(io::Error::other(format!("the layer unpacks to more than {RATIO_MAX} times its size")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TarBuilder, gzip, zstd, zstd_zeros};
    use super::*;

    fn unpacked(bytes: &[u8], digest: Option<Digest>, diff_id: &Digest) -> Result<(), String> {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, root) = (dir.path().join("blob"), dir.path().join("root"));
        std::fs::write(&file, [b"before", bytes, b"after"].concat()).expect("written");
        std::fs::create_dir(&root).expect("made");
        let blob = Blob { file, offset: 6, size: bytes.len() as u64, digest };
        blob.unpack(diff_id, &root, Form::Plain).map_err(|fault| fault.to_string())?;
        assert_eq!(std::fs::read(root.join("a")).expect("there"), b"content");
        Ok(())
    }

    #[test]
    fn blob_digest_and_diff_id_must_match() {
        if !tepui_facilities::available(&[tepui_facilities::Facility::Root]) {
            return; // The owners in a layer are kept.
        }
        let tar = TarBuilder::new().file("a", b"content").finish();
        let (diff_id, other) = (Digest::of(&tar), Digest::of(b"other"));
        unpacked(&tar, None, &diff_id).expect("a layer");
        for small in [tar.clone(), gzip(&tar), zstd(&tar)] {
            let digest = Digest::of(&small);
            unpacked(&small, Some(digest.clone()), &diff_id).expect("a layer");
            for (digest, diff_id) in [(None, &other), (Some(other.clone()), &diff_id), (Some(digest), &other)]
            {
                assert!(unpacked(&small, digest, diff_id).expect_err("damaged").contains("is damaged"));
            }
        }
    }

    #[test]
    fn decompression_bombs_are_rejected() {
        let content = vec![0; 100 << 20];
        let tar = TarBuilder::new().file("a", &content).finish();
        for small in [gzip(&tar), zstd_zeros(&tar[..512], content.len())] {
            let err = unpacked(&small, None, &Digest::of(b"")).expect_err("a bomb");
            assert!(err.contains("more than 200 times its size"), "{err}");
        }
    }

    #[test]
    fn unsupported_compression_is_named_in_the_error() {
        let err = unpacked(&[XZ, &[0; 100]].concat(), None, &Digest::of(b"")).expect_err("xz");
        assert!(err.contains("compressed by xz; gzip and zstd are supported"), "{err}");
    }
}
