//! Mustache: renders variables into service specs and config templates, and maps positions of the result to the template.
//!
//! Values are inserted verbatim: the results are YAML and configuration files, where HTML escapes would be wrong.
//! Never: partials, lists or lambdas; the variables are an environment.

use std::collections::BTreeMap;

/// Limit of a template and of its rendering.
pub const RENDERED_BYTES_MAX: usize = 1 << 20;
const SECTION_DEPTH_MAX: usize = 64;

/// A rendered template.
#[derive(Debug, Default)]
pub struct Rendered {
    pub text: String,
    /// Variables without a value, with their offset in the template; they render as nothing.
    pub missing: Vec<(String, usize)>,
    pieces: Vec<Piece>,
}

/// Start of a part of the rendering, and the part of the template that it comes from.
#[derive(Debug)]
struct Piece {
    rendered: usize,
    template: usize,
    literal: bool,
}

impl Rendered {
    /// The offset in the template of an offset in the rendering; of an inserted value, the offset of its tag.
    pub fn template_offset(&self, rendered: usize) -> usize {
        let after = self.pieces.partition_point(|piece| piece.rendered <= rendered);
        match after.checked_sub(1).map(|index| &self.pieces[index]) {
            Some(piece) if piece.literal => piece.template + (rendered - piece.rendered),
            Some(piece) => piece.template,
            None => 0,
        }
    }
}

/// A template that cannot be rendered.
#[derive(Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Offset in the template.
    pub at: usize,
    pub message: String,
}

/// Renders a template. Empty, missing and `false` (in any case) values are false as sections.
pub fn render(template: &str, variables: &BTreeMap<String, String>) -> Result<Rendered, TemplateError> {
    if template.len() > RENDERED_BYTES_MAX {
        return Err(error(
            0,
            format!("template of {} bytes; the limit is {RENDERED_BYTES_MAX}", template.len()),
        ));
    }
    let tokens = Tokens::new(template).read()?;
    let mut renderer = Renderer { template, variables, sections: Vec::new(), out: Rendered::default() };
    for token in &tokens {
        renderer.token(token)?;
    }
    match renderer.sections.last() {
        Some(open) => Err(error(open.at, format!("section {{{{#{}}}}} is not closed", open.name))),
        None => Ok(renderer.out),
    }
}

fn error(at: usize, message: String) -> TemplateError {
    TemplateError { at, message }
}

#[derive(Debug)]
enum Token<'t> {
    Text { start: usize, end: usize },
    Value { name: &'t str, at: usize },
    Open { name: &'t str, inverted: bool, at: usize },
    Close { name: &'t str, at: usize },
}

struct Section<'t> {
    name: &'t str,
    at: usize,
    /// Whether its content is rendered, given that what is around it is.
    shown: bool,
    inverted: bool,
}

struct Renderer<'t> {
    template: &'t str,
    variables: &'t BTreeMap<String, String>,
    sections: Vec<Section<'t>>,
    out: Rendered,
}

impl<'t> Renderer<'t> {
    fn token(&mut self, token: &Token<'t>) -> Result<(), TemplateError> {
        match *token {
            Token::Text { start, end } => self.write(start, &self.template[start..end], true),
            Token::Value { name, at } => self.value(name, at),
            Token::Open { name, inverted, at } => self.open(name, inverted, at),
            Token::Close { name, at } => self.close(name, at),
        }
    }

    fn value(&mut self, name: &'t str, at: usize) -> Result<(), TemplateError> {
        if !self.is_shown() {
            return Ok(());
        }
        match self.lookup(name) {
            Some(value) => self.write(at, value, false),
            None => {
                self.out.missing.push((name.to_owned(), at));
                Ok(())
            }
        }
    }

    fn open(&mut self, name: &'t str, inverted: bool, at: usize) -> Result<(), TemplateError> {
        if self.sections.len() == SECTION_DEPTH_MAX {
            return Err(error(at, format!("more than {SECTION_DEPTH_MAX} nested sections")));
        }
        let holds =
            self.lookup(name).is_some_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case("false"));
        self.sections.push(Section { name, at, shown: holds != inverted, inverted });
        Ok(())
    }

    fn close(&mut self, name: &str, at: usize) -> Result<(), TemplateError> {
        match self.sections.pop() {
            Some(open) if open.name == name => Ok(()),
            Some(open) => Err(error(at, format!("{{{{/{name}}}}} closes section {{{{#{}}}}}", open.name))),
            None => Err(error(at, format!("{{{{/{name}}}}} closes no section"))),
        }
    }

    fn is_shown(&self) -> bool {
        self.sections.iter().all(|section| section.shown)
    }

    /// The value of a variable; `.` is the value of the innermost section.
    fn lookup(&self, name: &str) -> Option<&'t str> {
        let name = match name {
            "." => self.sections.iter().rev().find(|section| !section.inverted)?.name,
            name => name,
        };
        self.variables.get(name).map(String::as_str)
    }

    fn write(&mut self, template: usize, text: &str, literal: bool) -> Result<(), TemplateError> {
        if text.is_empty() || !self.is_shown() {
            return Ok(());
        }
        if self.out.text.len() + text.len() > RENDERED_BYTES_MAX {
            return Err(error(template, format!("the rendering exceeds {RENDERED_BYTES_MAX} bytes")));
        }
        self.out.pieces.push(Piece { rendered: self.out.text.len(), template, literal });
        self.out.text.push_str(text);
        Ok(())
    }
}

/// Cuts a template into texts and tags.
struct Tokens<'t> {
    template: &'t str,
    /// End of what is cut.
    at: usize,
    open: &'t str,
    close: &'t str,
    tokens: Vec<Token<'t>>,
}

impl<'t> Tokens<'t> {
    fn new(template: &'t str) -> Tokens<'t> {
        Tokens { template, at: 0, open: "{{", close: "}}", tokens: Vec::new() }
    }

    fn read(mut self) -> Result<Vec<Token<'t>>, TemplateError> {
        while let Some(found) = self.template[self.at..].find(self.open) {
            let start = self.at + found;
            self.tag(start)?;
        }
        self.text(self.template.len());
        Ok(self.tokens)
    }

    /// Everything up to `end` that is not yet cut.
    fn text(&mut self, end: usize) {
        if end > self.at {
            self.tokens.push(Token::Text { start: self.at, end });
        }
    }

    fn tag(&mut self, start: usize) -> Result<(), TemplateError> {
        let inner = start + self.open.len();
        let raw = self.open == "{{" && self.template[inner..].starts_with('{');
        let close = if raw { "}}}" } else { self.close };
        let Some(length) = self.template[inner..].find(close) else {
            return Err(error(start, format!("tag without its {close}")));
        };
        let end = inner + length + close.len();
        let content = &self.template[inner + usize::from(raw)..inner + length];
        let name = content.get(1..).unwrap_or_default().trim();
        match content.chars().next() {
            Some('#') => self.block(start, end, Some(Token::Open { name, inverted: false, at: start })),
            Some('^') => self.block(start, end, Some(Token::Open { name, inverted: true, at: start })),
            Some('/') => self.block(start, end, Some(Token::Close { name, at: start })),
            Some('!') => self.block(start, end, None),
            Some('=') => {
                self.delimiters(start, content)?;
                self.block(start, end, None);
            }
            Some('>') => return Err(error(start, format!("partials are not supported: {{{{>{name}}}}}"))),
            Some('&') => self.variable(start, end, name)?,
            Some(_) => self.variable(start, end, content.trim())?,
            None => return Err(error(start, "tag without a name".to_owned())),
        }
        Ok(())
    }

    fn variable(&mut self, start: usize, end: usize, name: &'t str) -> Result<(), TemplateError> {
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(error(start, format!("{name:?} is not the name of a variable")));
        }
        self.text(start);
        self.tokens.push(Token::Value { name, at: start });
        self.at = end;
        Ok(())
    }

    /// A tag that renders as nothing; alone on its line, it takes the line with it.
    fn block(&mut self, start: usize, end: usize, token: Option<Token<'t>>) {
        let line_start = self.template[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end =
            self.template[end..].find('\n').map_or(self.template.len(), |newline| end + newline + 1);
        let blank = |start: usize, end: usize| self.template[start..end].trim().is_empty();
        let alone = line_start >= self.at && blank(line_start, start) && blank(end, line_end);
        self.text(if alone { line_start } else { start });
        self.tokens.extend(token);
        self.at = if alone { line_end } else { end };
    }

    fn delimiters(&mut self, start: usize, content: &'t str) -> Result<(), TemplateError> {
        let words: Vec<&str> = content.trim_matches('=').split_whitespace().collect();
        match words[..] {
            [open, close] if content.len() > 1 && content.ends_with('=') => {
                (self.open, self.close) = (open, close);
                Ok(())
            }
            _ => Err(error(start, "a change of delimiters is written {{=<% %>=}}".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> BTreeMap<String, String> {
        [("X", "x"), ("OPTIONS", "size=10;a<b"), ("NO", "False"), ("EMPTY", ""), ("YES", "true")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn templates_render() {
        let cases = [
            ("a {{X}} b", "a x b"),
            ("{{ X }}{{{X}}}{{&X}}", "xxx"),
            ("{{OPTIONS}}", "size=10;a<b"),
            ("[{{NO}}]", "[False]"),
            ("[{{GONE}}]", "[]"),
            ("a\n{{#YES}}\nb\n{{/YES}}\nc\n", "a\nb\nc\n"),
            ("a\n  {{#NO}}\nb {{X}}\n  {{/NO}}\nc\n", "a\nc\n"),
            ("{{^NO}}n{{/NO}}{{^EMPTY}}e{{/EMPTY}}{{^GONE}}g{{/GONE}}{{^YES}}y{{/YES}}", "neg"),
            ("{{#X}}<{{.}}>{{/X}}", "<x>"),
            ("{{#X}}{{#NO}}a{{/NO}}b{{/X}}", "b"),
            ("a\n{{! a remark }}\nb{{!x}}c", "a\nbc"),
            ("{{=<% %>=}}\n<%X%> {{X}}", "x {{X}}"),
            ("{{#YES}}\r\na\r\n{{/YES}}\r\n", "a\r\n"),
        ];
        for (template, expected) in cases {
            assert_eq!(render(template, &variables()).expect(template).text, expected, "{template:?}");
        }
    }

    #[test]
    fn bad_templates_name_the_tag_and_its_place() {
        let cases = [
            ("ab {{X", 3, "tag without its }}"),
            ("{{{X}}", 0, "tag without its }}}"),
            ("{{#X}}", 0, "section {{#X}} is not closed"),
            ("{{#X}}{{/Y}}", 6, "{{/Y}} closes section {{#X}}"),
            ("a{{/Y}}", 1, "{{/Y}} closes no section"),
            ("{{>X}}", 0, "partials are not supported: {{>X}}"),
            ("{{}}", 0, "tag without a name"),
            ("{{a b}}", 0, "\"a b\" is not the name of a variable"),
            ("{{=a=}}", 0, "a change of delimiters is written {{=<% %>=}}"),
        ];
        for (template, at, message) in cases {
            let expected = TemplateError { at, message: message.to_owned() };
            assert_eq!(render(template, &variables()).expect_err(template), expected, "{template:?}");
        }
        let large = "x".repeat(RENDERED_BYTES_MAX + 1);
        assert!(render(&large, &variables()).is_err());
        let doubled = format!("{}{}", "x".repeat(RENDERED_BYTES_MAX - 10), "{{OPTIONS}}");
        assert!(render(&doubled[..], &variables()).is_err());
    }

    #[test]
    fn offsets_of_the_rendering_lead_to_the_template() {
        let template = "{{#NO}}\nhidden\n{{/NO}}\na: {{OPTIONS}} b";
        let rendered = render(template, &variables()).expect("renders");
        for part in ["a: ", " b"] {
            let offset = rendered.text.find(part).expect("rendered");
            assert_eq!(rendered.template_offset(offset), template.find(part).expect("in the template"));
        }
        let inside_value = rendered.text.find("=10").expect("rendered");
        assert_eq!(rendered.template_offset(inside_value), template.find("{{OPTIONS").expect("tag"));
    }

    #[test]
    fn values_without_a_variable_are_reported_and_sections_are_not() {
        let rendered = render("{{#A}}x{{/A}}{{#NO}}{{B}}{{/NO}} {{C}}", &variables()).expect("renders");
        assert_eq!(rendered.missing, [("C".to_owned(), 33)]);
    }
}
