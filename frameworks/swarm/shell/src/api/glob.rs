//! Patterns of image references: `*` and `?` within one part of a path, `[a-z]`, `\` before a literal. Pure.

/// Whether the whole text matches. A pattern that makes no sense matches nothing.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // The last star and the text behind which it was tried: enough to go back to, since stars take as little as they can.
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match step(&pattern[at..], text[from]) {
            Step::Star => {
                star = Some((at + 1, from));
                at += 1;
            }
            Step::One(width) => (at, from) = (at + width, from + 1),
            Step::No => match star {
                Some((behind, taken)) if text[taken] != '/' => {
                    star = Some((behind, taken + 1));
                    (at, from) = (behind, taken + 1);
                }
                Some(_) | None => return false,
            },
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

enum Step {
    Star,
    /// The beginning of the pattern, this long, takes the character.
    One(usize),
    No,
}

fn step(pattern: &[char], character: char) -> Step {
    match pattern {
        ['*', ..] => Step::Star,
        ['?', ..] if character != '/' => Step::One(1),
        ['\\', literal, ..] if *literal == character => Step::One(2),
        ['[', rest @ ..] => class(rest, character).map_or(Step::No, |width| Step::One(width + 1)),
        [literal, ..] if *literal == character && !matches!(literal, '?' | '\\') => Step::One(1),
        [..] => Step::No,
    }
}

/// The width of a class including its bracket, if it takes the character.
fn class(pattern: &[char], character: char) -> Option<usize> {
    let end = pattern.iter().skip(1).position(|it| *it == ']')? + 1;
    let (is_negated, members) = match &pattern[..end] {
        ['^', members @ ..] => (true, members),
        members => (false, members),
    };
    let mut at = 0;
    let mut found = false;
    while at < members.len() {
        match &members[at..] {
            [first, '-', last, ..] => {
                found |= (*first..=*last).contains(&character);
                at += 3;
            }
            rest => {
                found |= rest[0] == character;
                at += 1;
            }
        }
    }
    (found != is_negated && character != '/').then_some(end + 1)
}

/// An image's reference against the pattern of the filter `reference`: the whole of it, or only its name.
pub fn is_reference(pattern: &str, reference: &str) -> bool {
    let end =
        reference.find('@').or_else(|| reference.rfind(':').filter(|at| !reference[*at..].contains('/')));
    let name = end.map_or(reference, |end| &reference[..end]);
    let pattern = pattern
        .strip_prefix("docker.io/")
        .map_or(pattern, |rest| rest.strip_prefix("library/").unwrap_or(rest));
    matches(pattern, reference) || matches(pattern, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("busybox", "busybox", true),
            ("busy*", "busybox", true),
            ("*box", "busybox", true),
            ("b*y*x", "busybox", true),
            ("b?sybox", "busybox", true),
            ("*", "a/b", false),
            ("*/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("[a-c]usybox", "busybox", true),
            ("[^a-c]usybox", "busybox", false),
            ("[]", "a", false),
            ("[", "a", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("", "", true),
            ("**", "ab", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(200), &"a".repeat(150)));
    }

    #[test]
    fn references_match_with_and_without_tag() {
        for (pattern, reference, expected) in [
            ("busybox", "busybox:latest", true),
            ("busybox:latest", "busybox:latest", true),
            ("busybox:1", "busybox:latest", false),
            ("busy*:lat*", "busybox:latest", true),
            ("docker.io/library/busybox", "busybox:latest", true),
            ("host:5000/test", "host:5000/test:latest", true),
            ("host:5000/test", "host:5000/test", true),
            ("a", "a@sha256:00", true),
        ] {
            assert_eq!(is_reference(pattern, reference), expected, "{pattern} {reference}");
        }
    }
}
