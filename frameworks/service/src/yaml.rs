//! YAML as a tree of nodes with their offsets, from the events of the parser.
//!
//! Duplicate keys are problems of the document, not of the parser: reading goes on behind them. Anchors, aliases and merge
//! keys are resolved here, within a limit of nodes.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use crate::problem::PROBLEMS_MAX;

/// Limit of the nodes of a document, those that aliases repeat included.
pub const NODES_MAX: usize = 200_000;
/// Limit of nested collections.
pub const DEPTH_MAX: usize = 64;
/// Limit of all texts of a document together, those that aliases repeat included.
const TEXTS_BYTES_MAX: usize = 8 << 20;
/// Longest key: the keys on the way to a value make up its path.
const KEY_BYTES_MAX: usize = 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Offset in characters.
    pub at: usize,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Scalar { text: String, plain: bool },
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    pub at: usize,
    pub node: Node,
}

impl Node {
    /// Whether this is an absent value: `key:`, `key: ~` or `key: null`.
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, plain } => {
                *plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            Value::Sequence(_) | Value::Mapping(_) => false,
        }
    }

    fn size(&self) -> Size {
        let own = |bytes: usize| Size { nodes: 1, bytes };
        match &self.value {
            Value::Scalar { text, .. } => own(text.len()),
            Value::Sequence(nodes) => nodes.iter().map(Node::size).fold(own(0), Size::plus),
            Value::Mapping(entries) => entries
                .iter()
                .map(|entry| own(entry.key.len()).plus(entry.node.size()))
                .fold(own(0), Size::plus),
        }
    }
}

/// What a node takes in memory.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    /// Of its texts.
    bytes: usize,
}

impl Size {
    fn plus(self, other: Size) -> Size {
        Size { nodes: self.nodes + other.nodes, bytes: self.bytes + other.bytes }
    }
}

/// Something wrong with a document, at an offset in characters.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: usize,
    pub path: String,
    pub message: String,
}

/// Reads the only document of a text. `Err` is a text that is no YAML; faults beside a node leave it usable.
pub fn read(text: &str) -> Result<(Node, Vec<Fault>), Fault> {
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        size: Size::default(),
        faults: Vec::new(),
    };
    let root = builder.document()?;
    Ok((root, builder.faults))
}

struct Builder<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Node>,
    size: Size,
    faults: Vec<Fault>,
}

fn fault(at: usize, path: &str, message: impl Into<String>) -> Fault {
    Fault { at, path: path.to_owned(), message: message.into() }
}

/// The path of a member.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<'t> Builder<'t> {
    fn document(&mut self) -> Result<Node, Fault> {
        let root = loop {
            match self.next()? {
                (Event::StreamEnd, span) => {
                    return Err(fault(span.start.index(), "", "the document is empty"));
                }
                (Event::Nothing | Event::StreamStart | Event::DocumentStart(_), _) => {}
                event => break self.node(event, "", 0)?,
            }
        };
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(root),
                (Event::DocumentStart(_), span) => {
                    return Err(fault(
                        span.start.index(),
                        "",
                        "a file holds one document; this is a second one",
                    ));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), Fault> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(fault(error.marker().index(), "", format!("not YAML: {}", error.info()))),
            None => Err(fault(0, "", "the document ends early")),
        }
    }

    fn node(&mut self, (event, span): (Event<'t>, Span), path: &str, depth: usize) -> Result<Node, Fault> {
        let at = span.start.index();
        if depth > DEPTH_MAX {
            return Err(fault(at, path, format!("more than {DEPTH_MAX} nested collections")));
        }
        let bytes = if let Event::Scalar(text, ..) = &event { text.len() } else { 0 };
        self.count(Size { nodes: 1, bytes }, at, path)?;
        let (anchor, value) = match event {
            Event::Alias(id) => return self.alias(id, at, path),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none_or(|tag| tag.suffix != "str");
                (anchor, Value::Scalar { text: text.into_owned(), plain })
            }
            Event::SequenceStart(anchor, _) => (anchor, Value::Sequence(self.sequence(path, depth)?)),
            Event::MappingStart(anchor, _) => (anchor, Value::Mapping(self.mapping(path, depth)?)),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(fault(at, path, "a value is missing")),
        };
        let node = Node { at, value };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, more: Size, at: usize, path: &str) -> Result<(), Fault> {
        self.size = self.size.plus(more);
        if self.size.nodes > NODES_MAX {
            return Err(fault(at, path, format!("more than {NODES_MAX} values")));
        }
        match self.size.bytes > TEXTS_BYTES_MAX {
            true => Err(fault(at, path, format!("more than {TEXTS_BYTES_MAX} bytes of texts"))),
            false => Ok(()),
        }
    }

    fn alias(&mut self, id: usize, at: usize, path: &str) -> Result<Node, Fault> {
        let size = self.anchors.get(&id).map(Node::size);
        let size = size.ok_or_else(|| fault(at, path, "alias of an anchor that is not complete"))?;
        self.count(size, at, path)?;
        Ok(self.anchors[&id].clone())
    }

    /// Notes what is wrong and reads on. A report shows no more than so many.
    fn note(&mut self, found: Fault) {
        if self.faults.len() < PROBLEMS_MAX {
            self.faults.push(found);
        }
    }

    fn sequence(&mut self, path: &str, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(nodes),
                event => {
                    let path = format!("{path}[{}]", nodes.len());
                    nodes.push(self.node(event, &path, depth + 1)?);
                }
            }
        }
    }

    fn mapping(&mut self, path: &str, depth: usize) -> Result<Vec<Entry>, Fault> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut merged = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        loop {
            let event = match self.next()? {
                (Event::MappingEnd, _) => break,
                event => event,
            };
            let key = self.node(event, path, depth + 1)?;
            let name = match key.value {
                Value::Scalar { text, .. } => text,
                Value::Sequence(_) | Value::Mapping(_) => {
                    self.note(fault(key.at, path, "a key is a text, not a collection"));
                    String::new()
                }
            };
            if name.len() > KEY_BYTES_MAX {
                return Err(fault(key.at, path, format!("a key is longer than {KEY_BYTES_MAX} bytes")));
            }
            let path = join(path, &name);
            let event = self.next()?;
            let node = self.node(event, &path, depth + 1)?;
            if name == "<<" {
                merged.push(node);
            } else if !names.insert(name.clone()) {
                self.note(fault(key.at, &path, format!("Duplicate field '{name}'")));
            } else {
                entries.push(Entry { key: name, at: key.at, node });
            }
        }
        for node in merged {
            merge(node, path, &mut names, &mut entries)?;
        }
        Ok(entries)
    }
}

/// Adds the entries of a merge key that the mapping does not have itself.
fn merge(node: Node, path: &str, names: &mut HashSet<String>, entries: &mut Vec<Entry>) -> Result<(), Fault> {
    match node.value {
        Value::Mapping(more) => {
            entries.extend(more.into_iter().filter(|entry| names.insert(entry.key.clone())));
            Ok(())
        }
        Value::Sequence(nodes) => nodes.into_iter().try_for_each(|node| merge(node, path, names, entries)),
        Value::Scalar { .. } => Err(fault(node.at, path, "`<<` merges a mapping or a list of mappings")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(node: &Node) -> Vec<&str> {
        match &node.value {
            Value::Mapping(entries) => entries.iter().map(|entry| entry.key.as_str()).collect(),
            Value::Scalar { .. } | Value::Sequence(_) => Vec::new(),
        }
    }

    #[test]
    fn yaml_documents_are_parsed_with_anchors_and_merges() {
        let (root, faults) = read("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\ne:\n- *x\n- ~\n").expect("YAML");
        assert_eq!((keys(&root), faults), (vec!["a", "d", "e"], vec![]));
        let Value::Mapping(entries) = &root.value else { panic!("a mapping") };
        assert_eq!(keys(&entries[1].node), ["c", "b"]);
        let Value::Sequence(items) = &entries[2].node.value else { panic!("a sequence") };
        assert_eq!(keys(&items[0]), ["b", "c"]);
        assert!(items[1].is_null());
    }

    #[test]
    fn duplicate_keys_are_faults_at_every_level() {
        let (_, faults) = read("a: 1\nb:\n  c: 1\n  c: 2\na: 2\n").expect("YAML");
        let found: Vec<(usize, &str)> = faults.iter().map(|fault| (fault.at, fault.path.as_str())).collect();
        assert_eq!(found, [(17, "b.c"), (22, "a")]);
        let (_, faults) = read(&"a: 1\n".repeat(PROBLEMS_MAX + 2)).expect("YAML");
        assert_eq!(faults.len(), PROBLEMS_MAX);
    }

    #[test]
    fn invalid_or_multiple_yaml_documents_are_rejected() {
        let nested = "[".repeat(100);
        let bomb: String = (1..10).fold("a0: &a0 [x,x,x,x,x,x,x,x]\n".to_owned(), |text, n| {
            let alias = vec![format!("*a{}", n - 1); 8].join(",");
            format!("{text}a{n}: &a{n} [{alias}]\n")
        });
        let text_bomb = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a,".repeat(100_000));
        let long_key = format!("? {}\n: 1\n", "x".repeat(KEY_BYTES_MAX + 1));
        let cases = [
            ("", "the document is empty"),
            ("# nothing\n", "the document is empty"),
            ("a: [1", "not YAML"),
            ("a: *b", "not YAML"),
            ("a: 1\n---\nb: 2\n", "second"),
            (nested.as_str(), "nested"),
            (bomb.as_str(), "more than 200000 values"),
            (text_bomb.as_str(), "more than 8388608 bytes of texts"),
            (long_key.as_str(), "a key is longer than 1024 bytes"),
            ("a: &a [*a]", ""),
            ("<<: 1", "merges"),
        ];
        for (text, message) in cases {
            let fault = read(text).expect_err(text);
            assert!(fault.message.contains(message), "{text:?}: {fault:?}");
        }
    }
}
