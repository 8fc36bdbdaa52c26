//! One field of a form with files (`multipart/form-data`).

/// Longest boundary (RFC 2046). The body is searched for it, which takes time in proportion to its length.
const BOUNDARY_CHARACTERS_MAX: usize = 70;

/// The content of the field `name`.
pub(super) fn field(content_type: &str, body: &[u8], name: &str) -> Result<Vec<u8>, String> {
    let boundary = content_type
        .strip_prefix("multipart/form-data")
        .and_then(|rest| rest.split(';').find_map(|part| part.trim().strip_prefix("boundary=")))
        .map(|boundary| boundary.trim_matches('"'))
        .filter(|boundary| (1..=BOUNDARY_CHARACTERS_MAX).contains(&boundary.len()))
        .ok_or("expecting 'Content-Type' of multipart/form-data with a boundary of 1 to 70 characters")?;
    let delimiter = format!("--{boundary}").into_bytes();
    let wanted = format!("name=\"{name}\"");
    let mut rest = body;
    while let Some(start) = position(rest, &delimiter) {
        rest = &rest[start + delimiter.len()..];
        let end = position(rest, &delimiter).unwrap_or(rest.len());
        let part = &rest[..end];
        let Some(head_end) = position(part, b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&part[..head_end]);
        if head.split([';', '\r', '\n']).any(|word| word.trim() == wanted) {
            let content = &part[head_end + 4..];
            return Ok(content.strip_suffix(b"\r\n").unwrap_or(content).to_vec());
        }
    }
    Err(format!("the form has no field {name:?}"))
}

fn position(text: &[u8], sought: &[u8]) -> Option<usize> {
    text.windows(sought.len()).position(|window| window == sought)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let body = b"--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\nContent-Type: text/plain\r\n\r\na\r\nb\r\n--b--\r\n";
        let form = "multipart/form-data; boundary=b";
        assert_eq!(field(form, body, "file").as_deref(), Ok(&b"a\r\nb"[..]));
        assert_eq!(field(form, body, "none").expect_err("absent"), "the form has no field \"none\"");
        let long = format!("multipart/form-data; boundary={}", "b".repeat(BOUNDARY_CHARACTERS_MAX + 1));
        let long_body = format!("--{}\r\nname=\"file\"\r\n\r\na", &long[30..]);
        for (content_type, body) in [
            ("text/plain", &body[..]),
            (form, b""),
            ("multipart/form-data", &body[..]),
            (&long, long_body.as_bytes()),
        ] {
            assert!(field(content_type, body, "file").is_err(), "{content_type}");
        }
    }
}
