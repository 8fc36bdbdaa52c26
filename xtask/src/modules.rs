//! The module graph inside each crate: sibling modules form no cycle, and layers are used from above only.
//!
//! For every module, the graph of its direct children is built: an edge from A to B means that a file in the subtree
//! of A names an item in the subtree of B, also through a re-export of a common ancestor. A module and the items of its
//! own file are one unit, so edges between parent and child are not part of any graph. Tests do not count.
//! Absent: macros, and names that reach a module only through a trait.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use crate::declared::{DECLARED, Layers};
use crate::rust::{self, Source};

const GROUPS: [&str; 6] = ["core", "shell", "container", "frameworks", "client", "executors"];

/// `crate::a::b` as its segments.
type ModulePath = Vec<String>;
type Edges = BTreeMap<String, BTreeSet<String>>;

pub fn check(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    for (folder, sources) in crates(root)? {
        let graph = Graph::new(&sources);
        let cycles = graph.cycles().into_iter();
        problems.extend(cycles.map(|cycle| format!("{folder}: modules in a cycle: {}", cycle.join(", "))));
        if let Some((_, layers)) = DECLARED.iter().find(|(name, _)| *name == folder) {
            graph.check_layers(&folder, layers, problems);
        }
    }
    Ok(())
}

/// Prints the edges of a crate's top-level modules; `cargo xtask modules core/master`.
pub fn print(root: &Path, folder: &str) -> Result<()> {
    let crates = crates(root)?;
    let sources = crates.get(folder).with_context(|| format!("there is no crate {folder}"))?;
    let graph = Graph::new(sources);
    for (from, targets) in graph.children(&[]) {
        println!("{from} -> {}", targets.into_iter().collect::<Vec<_>>().join(" "));
    }
    for cycle in graph.cycles() {
        println!("cycle: {}", cycle.join(" "));
    }
    Ok(())
}

fn crates(root: &Path) -> Result<BTreeMap<String, Vec<Source>>> {
    let mut found = BTreeMap::new();
    for source in rust::sources(root, &GROUPS)? {
        let Some((folder, _)) = source.name.split_once("/src/") else { continue };
        if !rust::is_test(&source.name) && !source.name.contains("/src/bin/") {
            found.entry(folder.to_string()).or_insert_with(Vec::new).push(source);
        }
    }
    Ok(found)
}

struct Graph {
    modules: BTreeSet<ModulePath>,
    /// From a module to the modules whose items it names.
    uses: Vec<(ModulePath, ModulePath)>,
}

impl Graph {
    fn new(sources: &[Source]) -> Self {
        let files: Vec<(ModulePath, String)> =
            sources.iter().map(|source| (module_of(&source.name), rust::code(&source.text))).collect();
        let modules: BTreeSet<ModulePath> = files.iter().map(|(module, _)| module.clone()).collect();
        let mut names = Vec::new();
        for (module, code) in &files {
            let is_file_of_children =
                modules.iter().any(|other| other.len() > module.len() && other.starts_with(module));
            for path in rust::paths(code) {
                if let Some(absolute) = absolute(module, &path.segments, is_file_of_children) {
                    names.push((module.clone(), absolute, path.alias.clone(), path.is_use));
                }
            }
        }
        let mut reexports: BTreeMap<ModulePath, ModulePath> = BTreeMap::new();
        for (module, target, alias, is_use) in &names {
            if *is_use && let Some(name) = alias.as_ref().or(target.last()) {
                let mut visible = module.clone();
                visible.push(name.clone());
                if visible != *target {
                    reexports.insert(visible, target.clone());
                }
            }
        }
        let resolve = |target: &ModulePath| resolve(target, &modules, &reexports);
        let uses = names.iter().map(|(from, target, _, _)| (from.clone(), resolve(target))).collect();
        Self { modules, uses }
    }

    /// The graph of the direct children of `parent`.
    fn children(&self, parent: &[String]) -> Edges {
        let child =
            |path: &ModulePath| (path.starts_with(parent)).then(|| path.get(parent.len()).cloned()).flatten();
        let mut edges: Edges =
            self.modules.iter().filter_map(child).map(|name| (name, BTreeSet::new())).collect();
        for (from, to) in &self.uses {
            if let (Some(from), Some(to)) = (child(from), child(to))
                && from != to
            {
                edges.entry(from).or_default().insert(to);
            }
        }
        edges
    }

    /// Sets of siblings that reach each other, with their full paths.
    fn cycles(&self) -> Vec<Vec<String>> {
        let mut parents: BTreeSet<ModulePath> = self.modules.clone();
        parents.insert(Vec::new());
        let mut cycles = Vec::new();
        for parent in parents {
            for members in cycles_of(&self.children(&parent)) {
                let full =
                    |name: &String| parent.iter().chain([name]).cloned().collect::<Vec<_>>().join("::");
                cycles.push(members.iter().map(full).collect());
            }
        }
        cycles
    }

    fn check_layers(&self, folder: &str, layers: Layers, problems: &mut Vec<String>) {
        let level = |name: &str| layers.iter().position(|(_, modules)| modules.contains(&name));
        let children = self.children(&[]);
        let declared = layers.iter().flat_map(|(_, modules)| *modules);
        for module in declared.filter(|module| !children.contains_key(**module)) {
            problems.push(format!("{folder}: there is no module {module}, but xtask/src/declared.rs has it"));
        }
        for (from, targets) in children {
            let Some(own) = level(&from) else {
                problems.push(format!("{folder}: module {from} is in no layer of xtask/src/declared.rs"));
                continue;
            };
            for target in &targets {
                if let Some(higher) = level(target).filter(|other| *other > own) {
                    let (own, higher) = (layers[own].0, layers[higher].0);
                    problems.push(format!("{folder}: {from} ({own}) must not use {target} ({higher})"));
                }
            }
        }
    }
}

/// The longest prefix that is a module, after following re-exports.
fn resolve(
    target: &ModulePath,
    modules: &BTreeSet<ModulePath>,
    reexports: &BTreeMap<ModulePath, ModulePath>,
) -> ModulePath {
    const HOPS_MAX: usize = 8;
    let mut target = target.clone();
    for _ in 0..HOPS_MAX {
        let module = (0..=target.len()).rev().find(|end| modules.contains(&target[..*end])).unwrap_or(0);
        let Some(name) = target.get(module) else { break };
        let mut visible = target[..module].to_vec();
        visible.push(name.clone());
        let Some(origin) = reexports.get(&visible) else { break };
        let mut next = origin.clone();
        next.extend_from_slice(&target[module + 1..]);
        if next == target {
            break;
        }
        target = next;
    }
    let end = (0..=target.len()).rev().find(|end| modules.contains(&target[..*end])).unwrap_or(0);
    target[..end].to_vec()
}

/// A path as written in `module`, from the root of the crate; none for other crates and local names.
fn absolute(module: &ModulePath, segments: &[String], has_children: bool) -> Option<ModulePath> {
    let rest = |at: usize| segments[at..].to_vec();
    match segments.first()?.as_str() {
        "crate" => Some(rest(1)),
        "self" => Some([module.clone(), rest(1)].concat()),
        "super" => {
            let ups = segments.iter().take_while(|segment| *segment == "super").count();
            let base = module.len().checked_sub(ups)?;
            Some([module[..base].to_vec(), rest(ups)].concat())
        }
        // A child by its plain name; other crates have no module of that name here.
        _ if has_children => Some([module.clone(), rest(0)].concat()),
        _ => None,
    }
}

fn module_of(name: &str) -> ModulePath {
    let path = name.split_once("/src/").map_or(name, |(_, path)| path).trim_end_matches(".rs");
    let mut segments: ModulePath = path.split('/').map(ToString::to_string).collect();
    let last = segments.last().map(String::as_str);
    if last == Some("mod") || segments.len() == 1 && matches!(last, Some("lib" | "main")) {
        segments.pop();
    }
    segments
}

fn cycles_of(edges: &Edges) -> Vec<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|from| (from, reachable(edges, from))).collect();
    let mut seen = BTreeSet::new();
    let mut cycles = Vec::new();
    for from in edges.keys().filter(|from| reach[from].contains(from)) {
        if seen.insert(from) {
            let members: Vec<&String> = reach[from]
                .iter()
                .copied()
                .filter(|other| reach.get(other).is_some_and(|back| back.contains(from)))
                .collect();
            seen.extend(members.iter().copied());
            cycles.push(members.into_iter().cloned().collect());
        }
    }
    cycles
}

fn reachable<'a>(edges: &'a Edges, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&String> = edges.get(from).into_iter().flatten().collect();
    while let Some(next) = pending.pop() {
        if found.insert(next) {
            pending.extend(edges.get(next).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let source = |(name, text): &(&str, &str)| Source {
            name: format!("core/x/src/{name}"),
            text: text.to_string(),
        };
        Graph::new(&files.iter().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn mutual_use_of_siblings_is_a_cycle() {
        let found = graph(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "fn f() { crate::a::g(); }\n"),
            ("c.rs", "use crate::{a, b::{self, B}};\n"),
        ]);
        assert_eq!(found.cycles(), [["a", "b"]]);
    }

    #[test]
    fn reexports_count_for_the_module_of_the_item() {
        let found = graph(&[
            ("lib.rs", "mod a;\nmod b;\npub use b::B;\n"),
            ("a.rs", "use crate::B;\n"),
            ("b.rs", "use super::a::A;\n"),
        ]);
        assert_eq!(found.cycles(), [["a", "b"]]);
    }

    #[test]
    fn parent_and_child_are_one_unit() {
        let found = graph(&[
            ("lib.rs", "mod a;\n"),
            ("a.rs", "mod b;\nuse b::B;\npub struct A;\n"),
            ("a/b.rs", "use super::A;\n"),
        ]);
        assert!(found.cycles().is_empty());
    }

    #[test]
    fn use_of_a_higher_layer_is_rejected() {
        let found = graph(&[("lib.rs", ""), ("a.rs", "use crate::b::B;\n"), ("b.rs", "")]);
        let mut problems = Vec::new();
        found.check_layers("core/x", &[("low", &["b"]), ("high", &["a"])], &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        found.check_layers("core/x", &[("low", &["a"]), ("high", &["b"])], &mut problems);
        assert_eq!(problems, ["core/x: a (low) must not use b (high)"]);
    }
}
