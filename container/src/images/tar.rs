//! Tape archives as images use them: ustar with the extensions of POSIX (pax) and GNU, read from front to back.
//!
//! Reports the content of an archive and never touches a file. An unsupported part is an error that names the entry.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

const BLOCK: usize = 512;
/// Names and other extensions of one entry, and of all of an archive: they are held in memory.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;
const EXTENSIONS_BYTES_MAX: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    HardLink,
    Symlink,
    Character,
    Block,
    Directory,
    Fifo,
}

/// One entry, as in the archive: untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub path: PathBuf,
    pub kind: Kind,
    pub size: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Seconds since 1970.
    pub changed: i64,
    pub link: PathBuf,
    pub attributes: Vec<(String, Vec<u8>)>,
}

/// An archive; the content of the entry that [`Tar::next`] gave last is read from it.
pub(super) struct Tar<R> {
    reader: R,
    content: u64,
    padding: u64,
    position: u64,
    /// Of extensions, so far.
    extensions: u64,
}

/// Extension records for the next entry.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u32>,
    gid: Option<u32>,
    changed: Option<i64>,
    attributes: Vec<(String, Vec<u8>)>,
}

impl<R: Read> Tar<R> {
    pub fn new(reader: R) -> Tar<R> {
        Tar { reader, content: 0, padding: 0, position: 0, extensions: 0 }
    }

    /// Where in the archive the next byte is.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn into_inner(self) -> R {
        self.reader
    }

    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        let (mut extended, before) = (Extended::default(), self.extensions);
        loop {
            self.skip()?;
            let Some(header) = self.header()? else { return Ok(None) };
            let size = number(&header[124..136])?;
            if matches!(header[156], b'L' | b'K' | b'x' | b'g') {
                self.count_extension(size, before)?;
            }
            match header[156] {
                b'L' => extended.path = Some(without_nul(self.extension(size)?)),
                b'K' => extended.link = Some(without_nul(self.extension(size)?)),
                b'x' => read_pax(&self.extension(size)?, &mut extended)?,
                b'g' => drop(self.extension(size)?), // Describes the archive, such as its comment.
                kind => return self.entry(&header, kind, size, extended).map(Some),
            }
        }
    }

    /// The next header; none at the end, which is a block of zeros or nothing at all.
    fn header(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut header = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.reader.read(&mut header[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(bad("the archive is truncated in a header")),
                read => filled += read,
            }
        }
        self.position += BLOCK as u64;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let stored = number(&header[148..156])?;
        let blanked = header[..148].iter().chain(&[b' '; 8]).chain(&header[156..]);
        match blanked.map(|byte| u64::from(*byte)).sum::<u64>() == stored {
            true => Ok(Some(header)),
            false => Err(bad("the checksum of a header is wrong: it is not a tar archive, or damaged")),
        }
    }

    fn entry(&mut self, header: &[u8; BLOCK], kind: u8, size: u64, more: Extended) -> io::Result<Entry> {
        let path = more.path.unwrap_or_else(|| path_of(header));
        let kind = match kind {
            b'0' | 0 | b'7' if path.ends_with(b"/") => Kind::Directory,
            b'0' | 0 | b'7' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::Symlink,
            b'3' => Kind::Character,
            b'4' => Kind::Block,
            b'5' => Kind::Directory,
            b'6' => Kind::Fifo,
            kind => {
                let (name, kind) = (String::from_utf8_lossy(&path), char::from(kind));
                return Err(bad(&format!("'{name}' is of the kind '{kind}', which is not supported")));
            }
        };
        let size = if kind == Kind::File { more.size.unwrap_or(size) } else { 0 };
        self.begin_content(size)?;
        // The last number is not a user: to the kernel it means to leave the owner unchanged.
        let id = |given: Option<u32>, field: &[u8]| {
            let id = given.map_or_else(|| number(field), |id| Ok(id.into()))?;
            let id = u32::try_from(id).ok().filter(|id| *id != u32::MAX);
            id.ok_or_else(|| bad("the owner of an entry is not a user or group"))
        };
        Ok(Entry {
            path: PathBuf::from(OsString::from_vec(path)),
            kind,
            size,
            mode: number(&header[100..108])? as u32 & 0o7777,
            uid: id(more.uid, &header[108..116])?,
            gid: id(more.gid, &header[116..124])?,
            changed: more.changed.map_or_else(|| number(&header[136..148]).map(u64::cast_signed), Ok)?,
            link: PathBuf::from(OsString::from_vec(more.link.unwrap_or_else(|| text(&header[157..257])))),
            attributes: more.attributes,
        })
    }

    /// `before`: what extensions of earlier entries held.
    fn count_extension(&mut self, size: u64, before: u64) -> io::Result<()> {
        self.extensions = self.extensions.saturating_add(size);
        if self.extensions - before > EXTENSION_BYTES_MAX {
            return Err(bad("the name of an entry is too long"));
        }
        if self.extensions > EXTENSIONS_BYTES_MAX {
            return Err(bad("the names of its entries are too long"));
        }
        Ok(())
    }

    fn begin_content(&mut self, size: u64) -> io::Result<()> {
        let whole = size.checked_next_multiple_of(BLOCK as u64);
        self.padding = whole.ok_or_else(|| bad("an entry is too large"))? - size;
        self.content = size;
        Ok(())
    }

    fn extension(&mut self, size: u64) -> io::Result<Vec<u8>> {
        self.begin_content(size)?;
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Leaves the present entry behind.
    fn skip(&mut self) -> io::Result<()> {
        let rest = self.content + self.padding;
        let skipped = io::copy(&mut (&mut self.reader).take(rest), &mut io::sink())?;
        (self.content, self.padding) = (0, 0);
        self.position += skipped;
        if skipped == rest { Ok(()) } else { Err(bad("the archive is truncated in an entry")) }
    }
}

impl<R: Read> Read for Tar<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.content).unwrap_or(usize::MAX));
        let read = self.reader.read(&mut buffer[..wanted])?;
        if read == 0 && wanted > 0 {
            return Err(bad("the archive is truncated in an entry"));
        }
        self.content -= read as u64;
        self.position += read as u64;
        Ok(read)
    }
}

/// The name, which ustar may have cut in two.
fn path_of(header: &[u8; BLOCK]) -> Vec<u8> {
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    // In GNU's own form other things are there.
    if prefix.is_empty() || &header[257..263] != b"ustar\0" {
        return name;
    }
    [&prefix[..], b"/", &name].concat()
}

/// Octal digits, or for what does not fit the number itself with the highest bit set.
fn number(field: &[u8]) -> io::Result<u64> {
    if let [first @ 0x80..=0xff, rest @ ..] = field {
        let wrong = || bad("a number of a header is negative or too large");
        let first = Some(first & 0x7f).filter(|first| first & 0x40 == 0).ok_or_else(wrong)?;
        return rest.iter().try_fold(u64::from(first), |sum, byte| match sum >> 56 {
            0 => Ok(sum << 8 | u64::from(*byte)),
            _ => Err(wrong()),
        });
    }
    let digits = field.iter().copied().filter(|byte| !matches!(byte, b' ' | 0));
    digits.into_iter().try_fold(0u64, |sum, digit| match digit {
        b'0'..=b'7' => sum
            .checked_mul(8)
            .and_then(|sum| sum.checked_add(u64::from(digit - b'0')))
            .ok_or_else(|| bad("a number of a header is too large")),
        _ => Err(bad("a number of a header is not octal: it is not a tar archive, or damaged")),
    })
}

fn text(field: &[u8]) -> Vec<u8> {
    without_nul(field.to_vec())
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

/// Lines of `<length> <key>=<value>`, where the length is that of the whole line.
fn read_pax(mut rest: &[u8], extended: &mut Extended) -> io::Result<()> {
    let wrong = || bad("invalid extended header");
    while !rest.is_empty() {
        let blank = rest.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
        let length: usize =
            std::str::from_utf8(&rest[..blank]).ok().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        let line = rest.get(blank + 1..length.checked_sub(1).ok_or_else(wrong)?).ok_or_else(wrong)?;
        rest = rest.get(length..).ok_or_else(wrong)?;
        let equals = line.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
        let key = std::str::from_utf8(&line[..equals]).map_err(|_| wrong())?;
        extended.set(key, &line[equals + 1..])?;
    }
    Ok(())
}

impl Extended {
    fn set(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let wrong = || bad(&format!("'{key}' of an extended header is not a number"));
        let text = || std::str::from_utf8(value).map_err(|_| wrong());
        match key {
            "path" => self.path = Some(value.to_vec()),
            "linkpath" => self.link = Some(value.to_vec()),
            "size" => self.size = Some(text()?.parse().map_err(|_| wrong())?),
            "uid" => self.uid = Some(text()?.parse().map_err(|_| wrong())?),
            "gid" => self.gid = Some(text()?.parse().map_err(|_| wrong())?),
            "mtime" => {
                let seconds = text()?.split('.').next().unwrap_or_default();
                self.changed = Some(seconds.parse().map_err(|_| wrong())?);
            }
            key if key.starts_with("GNU.sparse.") => {
                return Err(bad("files with holes are not supported"));
            }
            key => {
                if let Some(name) = key.strip_prefix("SCHILY.xattr.") {
                    self.attributes.push((name.to_owned(), value.to_vec()));
                }
            }
        }
        Ok(())
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use tepui_facilities::{Facility, available};

    use super::super::testing::TarBuilder;
    use super::*;

    fn read_all(bytes: &[u8]) -> io::Result<Vec<(Entry, Vec<u8>)>> {
        let mut tar = Tar::new(bytes);
        let mut found = Vec::new();
        while let Some(entry) = tar.next()? {
            let mut content = Vec::new();
            tar.read_to_end(&mut content)?;
            found.push((entry, content));
        }
        Ok(found)
    }

    #[test]
    fn tar_entries_of_all_kinds_and_long_names_are_read() {
        let long = format!("{}/file", "d".repeat(150));
        let bytes = TarBuilder::new()
            .directory("etc", 0o755)
            .file("etc/hosts", b"here")
            .symlink("link", "../x")
            .long_name(&long)
            .file("ignored", b"")
            .pax(&[("path", "from/pax"), ("mtime", "12.5"), ("SCHILY.xattr.user.a", "b")])
            .file("ignored", b"four")
            .finish();
        let found = read_all(&bytes).expect("an archive");
        let paths: Vec<_> = found.iter().map(|(entry, _)| entry.path.display().to_string()).collect();
        assert_eq!(paths, ["etc", "etc/hosts", "link", &long, "from/pax"]);
        assert_eq!((found[1].0.kind, found[1].1.as_slice()), (Kind::File, &b"here"[..]));
        assert_eq!((found[2].0.kind, found[2].0.link.to_str()), (Kind::Symlink, Some("../x")));
        let last = &found[4].0;
        assert_eq!((last.changed, last.attributes.as_slice()), (12, &[("user.a".into(), b"b".to_vec())][..]));
    }

    #[test]
    fn archives_of_every_tar_format_are_read() {
        if !available(&[Facility::Program("tar")]) {
            return;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let name = "n".repeat(180);
        std::fs::write(dir.path().join(&name), "content").expect("written");
        for format in ["ustar", "gnu", "pax", "oldgnu"] {
            let output = std::process::Command::new("tar")
                .args(["-c", "-H", format, "-C"])
                .arg(dir.path())
                .arg(if format == "ustar" { "." } else { name.as_str() })
                .output()
                .expect("tar runs");
            let found = read_all(&output.stdout).expect("an archive");
            let names: Vec<_> = found.iter().map(|(entry, _)| entry.path.clone()).collect();
            if format != "ustar" {
                assert_eq!(names, [PathBuf::from(&name)], "{format}");
                assert_eq!(found[0].1, b"content");
            }
        }
    }

    #[test]
    fn octal_and_binary_tar_numbers_are_parsed() {
        let long = |end: &[u8]| [&[0x80][..], &vec![0; 11 - end.len()], end].concat();
        for (field, value) in [
            (b"0000755\0".to_vec(), Some(0o755)),
            (b"    17 \0".to_vec(), Some(0o17)),
            (vec![0; 8], Some(0)),
            (vec![0x80, 0, 0, 0, 0, 0, 1, 2], Some(258)),
            (long(&[1, 2]), Some(258)),
            (long(&[0xff; 8]), Some(u64::MAX)),
            (long(&[1; 9]), None),
            (vec![0xff; 8], None),
            (vec![0xff; 12], None),
            (b"0000798\0".to_vec(), None),
            (b"777777777777777777777777".to_vec(), None),
        ] {
            assert_eq!(number(&field).ok(), value, "{field:?}");
        }
    }

    /// Held in memory until their entry comes, which may be never.
    #[test]
    fn tar_extension_headers_are_limited() {
        let name = "n".repeat(1 << 19);
        let one = TarBuilder::new().long_name(&name).file("", b"");
        read_all(&one.finish()).expect("long, but not too long");
        let several = TarBuilder::new().long_name(&name).long_name(&name).long_name(&name).file("", b"");
        let err = read_all(&several.finish()).expect_err("one after the other");
        assert!(err.to_string().contains("the name of an entry is too long"), "{err}");
        let mut tar = Tar::new(io::empty());
        tar.extensions = EXTENSIONS_BYTES_MAX - 1;
        let before = tar.extensions;
        assert!(tar.count_extension(1, before).is_ok() && tar.count_extension(1, before).is_err());
    }

    #[test]
    fn damaged_archives_are_rejected_with_a_reason() {
        let whole = TarBuilder::new().file("a", &[7; 600]).finish();
        for (bytes, why) in [
            (&whole[..700], "truncated in an entry"),
            (&whole[..100], "truncated in a header"),
            (&[b'x'; 512][..], "not a tar archive"),
        ] {
            let err = read_all(bytes).expect_err("it is damaged");
            assert!(err.to_string().contains(why), "{err}");
        }
        let huge = |size: &str| TarBuilder::new().pax(&[("size", size)]).file("a", b"").finish();
        for size in [u64::MAX, u64::MAX - 510] {
            let err = read_all(&huge(&size.to_string())).expect_err("larger than anything");
            assert!(err.to_string().contains("an entry is too large"), "{err}");
        }
        for key in ["uid", "gid"] {
            let nobodys = TarBuilder::new().pax(&[(key, "4294967295")]).file("a", b"").finish();
            let err = read_all(&nobodys).expect_err("nobody has it");
            assert!(err.to_string().contains("is not a user or group"), "{err}");
        }
        let sparse = TarBuilder::new().pax(&[("GNU.sparse.major", "1")]).file("a", b"").finish();
        assert!(read_all(&sparse).is_err());
    }
}
