//! Frames on the socket of a switchboard: one byte for the kind, four for the length, and the bytes.
//!
//! Both ends are our own program, started by the same user; an invalid frame ends the connection.

/// No frame holds more.
pub(super) const FRAME_BYTES_MAX: usize = 64 * 1024;

const HEAD_BYTES: usize = 5;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first frame of a client of the output.
    Listen,
    /// The first frame of a client of the input.
    Type,
    /// The switchboard agrees to either.
    Welcome,
    /// Rejected: the input is in use.
    Busy,
    Stdout,
    Stderr,
    Stdin,
    /// Nothing more will be typed.
    StdinEnd,
    /// Rows and columns, two bytes each.
    Window,
    /// The request is impossible: there is no terminal.
    NoTerminal,
    /// End of the stream.
    End,
}

const KINDS: [(u8, Kind); 11] = [
    (b'l', Kind::Listen),
    (b't', Kind::Type),
    (b'k', Kind::Welcome),
    (b'b', Kind::Busy),
    (b'1', Kind::Stdout),
    (b'2', Kind::Stderr),
    (b'0', Kind::Stdin),
    (b'e', Kind::StdinEnd),
    (b'w', Kind::Window),
    (b'n', Kind::NoTerminal),
    (b'.', Kind::End),
];

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// The peer sent an invalid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// Appends a frame. More than fits into one is our own mistake.
pub(super) fn encode(kind: Kind, bytes: &[u8], out: &mut Vec<u8>) {
    assert!(bytes.len() <= FRAME_BYTES_MAX, "a frame is made of one piece of output");
    let code = KINDS.iter().find(|(_, known)| *known == kind).map_or(0, |(code, _)| *code);
    out.push(code);
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A frame alone.
pub(super) fn encoded(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + bytes.len());
    encode(kind, bytes, &mut out);
    out
}

/// Takes bytes, gives frames.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    /// Take all frames before pushing more, and no more than one frame waits here.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// `None` until more comes.
    pub fn next(&mut self) -> Result<Option<Frame>, Nonsense> {
        let Some((head, rest)) = self.buffer.split_at_checked(HEAD_BYTES) else { return Ok(None) };
        let kind = KINDS.iter().find(|(code, _)| *code == head[0]).map(|(_, kind)| *kind).ok_or(Nonsense)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(Nonsense);
        }
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let frame = Frame { kind, bytes: bytes.to_vec() };
        self.buffer.drain(..HEAD_BYTES + length);
        Ok(Some(frame))
    }
}

/// The bytes of a Window.
pub(super) fn window(rows: u16, columns: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (rows.to_be_bytes(), columns.to_be_bytes());
    [a, b, c, d]
}

/// Rows and columns of a Window.
pub(super) fn parse_window(bytes: &[u8]) -> Result<(u16, u16), Nonsense> {
    match bytes {
        [a, b, c, d] => Ok((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))),
        _ => Err(Nonsense),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_split_at_any_byte_are_decoded() {
        let mut bytes = Vec::new();
        let frames = [
            (Kind::Listen, &b""[..]),
            (Kind::Stdout, b"hello"),
            (Kind::Window, &window(25, 80)),
            (Kind::End, b""),
        ];
        for (kind, content) in frames {
            encode(kind, content, &mut bytes);
        }
        for cut in 1..bytes.len() {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for piece in bytes.chunks(cut) {
                decoder.push(piece);
                while let Some(frame) = decoder.next().expect("frames") {
                    found.push(frame);
                }
            }
            let expected = frames.map(|(kind, content)| Frame { kind, bytes: content.to_vec() });
            assert_eq!(found, expected, "pieces of {cut}");
        }
        assert_eq!(parse_window(&window(25, 80)), Ok((25, 80)));
    }

    #[test]
    fn malformed_frames_are_rejected() {
        for bytes in [&b"x\0\0\0\0"[..], b"1\xff\xff\xff\xff", b"1\0\x01\0\x01"] {
            let mut decoder = Decoder::default();
            decoder.push(bytes);
            assert_eq!(decoder.next(), Err(Nonsense), "{bytes:?}");
        }
        assert_eq!(parse_window(b"abc"), Err(Nonsense));
    }
}
