//! `/help`: what a program answers, read from its table of routes. For people; nothing here is about the cluster.

use std::collections::BTreeMap;
use std::fmt::Write;

use http::header::USER_AGENT;
use tepui_http::{HttpError, Request, Response, json, typed};
use tepui_proto::json::JsonWriter;

/// Clients that show text as it is; all others are taken for browsers, as in v1.
const TEXT_CLIENTS: [&str; 2] = ["curl", "HTTPie"];

/// What each part of a program (`master`, `metrics`, ...) answers under which name (`/state`), in a sentence each.
#[derive(Debug, Default)]
pub struct Help {
    parts: BTreeMap<&'static str, BTreeMap<String, &'static str>>,
}

/// A page before it is text: what it is about, and lines that are words or lead to another page.
struct Page {
    title: String,
    lines: Vec<Line>,
}

enum Line {
    Words(String),
    Link { label: String, target: String },
}

impl Help {
    pub(crate) fn add(&mut self, part: &'static str, name: String, about: &'static str) {
        self.parts.entry(part).or_default().insert(name, about);
    }

    /// The answer to `/help` and what is below it: all of it with `format=json`, else the page of `below`.
    pub fn answer(&self, below: &[String], request: &Request) -> Result<Response, HttpError> {
        if request.query.get("format") == Some("json") {
            return Ok(json(&request.query, self.document()));
        }
        let page = self.page(below)?;
        let agent = request.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        match TEXT_CLIENTS.iter().any(|client| agent.starts_with(client)) {
            true => Ok(typed("text/x-markdown", page.markdown())),
            false => Ok(typed("text/html; charset=utf-8", page.html())),
        }
    }

    fn page(&self, below: &[String]) -> Result<Page, HttpError> {
        let unknown = || HttpError::bad_request(format!("No help available for '/{}'.\n", below.join("/")));
        let link = |path: String| Line::Link { target: format!("/help/{path}"), label: format!("/{path}") };
        let Some((part, name)) = below.split_first() else {
            let lines = self.parts.keys().map(|part| link((*part).to_owned())).collect();
            return Ok(Page { title: "HELP".to_owned(), lines });
        };
        let names = self.parts.get(part.as_str()).ok_or_else(unknown)?;
        if name.is_empty() {
            let lines = names.keys().map(|name| link(path(part, name))).collect();
            return Ok(Page { title: format!("/{part}"), lines });
        }
        let name = format!("/{}", name.join("/"));
        let about = names.get(&name).ok_or_else(unknown)?;
        let title = format!("/{}", path(part, &name));
        Ok(Page { title, lines: vec![Line::Words((*about).to_owned())] })
    }

    fn document(&self) -> Vec<u8> {
        let mut w = JsonWriter::new();
        w.object(|w| {
            w.array_field("processes", |w| {
                for (part, names) in &self.parts {
                    w.object(|w| {
                        w.field("id", *part);
                        w.array_field("endpoints", |w| {
                            for (name, about) in names {
                                w.object(|w| {
                                    w.field("name", name.as_str());
                                    w.field("text", *about);
                                });
                            }
                        });
                    });
                }
            });
        });
        w.into_vec()
    }
}

/// Where an endpoint is: `master/state`, and `version` for what is a part's only one.
fn path(part: &str, name: &str) -> String {
    format!("{part}{}", name.trim_end_matches('/'))
}

impl Page {
    fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        for line in &self.lines {
            let written = match line {
                Line::Words(words) => writeln!(text, "{words}"),
                Line::Link { label, target } => writeln!(text, "> [{label}]({target})"),
            };
            written.expect("writing to a String cannot fail");
        }
        text
    }

    /// It contains nothing of the request, and the tables contain no special character of HTML.
    fn html(&self) -> String {
        let mut text = format!("<html><head><title>Help</title></head><body><h2>{}</h2>", self.title);
        for line in &self.lines {
            let written = match line {
                Line::Words(words) => write!(text, "<p>{words}</p>"),
                Line::Link { label, target } => write!(text, "<p><a href=\"{target}\">{label}</a></p>"),
            };
            written.expect("writing to a String cannot fail");
        }
        text + "</body></html>\n"
    }
}
