//! Archives for tests, also such that no tool would make.

#![cfg_attr(not(test), expect(dead_code, reason = "the fuzzer makes entries only"))]

#[derive(Clone)]
pub(super) struct TarBuilder(Vec<u8>);

impl TarBuilder {
    pub fn new() -> TarBuilder {
        TarBuilder(Vec::new())
    }

    pub fn entry(mut self, path: &str, kind: u8, mode: u32, link: &str, content: &[u8]) -> TarBuilder {
        let mut header = [0u8; 512];
        let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
        put(0, path.as_bytes());
        put(100, format!("{mode:07o}\0").as_bytes());
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", content.len()).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[kind]);
        put(157, link.as_bytes());
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend(header);
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub fn file(self, path: &str, content: &[u8]) -> TarBuilder {
        self.entry(path, b'0', 0o644, "", content)
    }

    pub fn directory(self, path: &str, mode: u32) -> TarBuilder {
        self.entry(path, b'5', mode, "", b"")
    }

    pub fn symlink(self, path: &str, to: &str) -> TarBuilder {
        self.entry(path, b'2', 0o777, to, b"")
    }

    pub fn hard_link(self, path: &str, to: &str) -> TarBuilder {
        self.entry(path, b'1', 0o644, to, b"")
    }

    pub fn device(self, path: &str) -> TarBuilder {
        self.entry(path, b'3', 0o666, "", b"")
    }

    /// The name of the entry that comes next, in GNU's way.
    pub fn long_name(self, name: &str) -> TarBuilder {
        self.entry("././@LongLink", b'L', 0, "", format!("{name}\0").as_bytes())
    }

    pub fn pax(self, pairs: &[(&str, &str)]) -> TarBuilder {
        let line = |(key, value): &(&str, &str)| {
            let rest = format!(" {key}={value}\n");
            let digits = if rest.len() > 97 { 3 } else { 2 };
            format!("{}{rest}", rest.len() + digits)
        };
        let text: String = pairs.iter().map(line).collect();
        self.entry("pax", b'x', 0o644, "", text.as_bytes())
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Some bytes and very many zeros: blocks of which each is one byte again and again.
pub(super) fn zstd_zeros(head: &[u8], zeros: usize) -> Vec<u8> {
    const RUN: usize = 1 << 17;
    let block = |size: usize, kind: usize| {
        let header = ((size << 3) | (kind << 1)).to_le_bytes();
        [header[0], header[1], header[2]]
    };
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let run: Vec<u8> = block(RUN, 1).into_iter().chain([0]).collect();
    [&frame[..], &block(head.len(), 0), head, &run.repeat(zeros.div_ceil(RUN))].concat()
}
