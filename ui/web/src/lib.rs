//! The operator pages: our own HTML, CSS and modules, part of the binary.
//!
//! They are ordinary users of the public endpoints. Never here: third-party code, inline scripts, private endpoints.
#![forbid(unsafe_code)]

/// What a page may load and talk to: itself, and the agents whose logs it shows.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self' http: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// One file.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    pub content_type: &'static str,
    pub content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// Every file by its path.
const ASSETS: &[(&[&str], Asset)] = &[
    (&[], Asset { content_type: HTML, content: include_str!("../assets/index.html") }),
    (&["index.html"], Asset { content_type: HTML, content: include_str!("../assets/index.html") }),
    (&["app", "style.css"], Asset { content_type: CSS, content: include_str!("../assets/style.css") }),
    (&["app", "icon.svg"], Asset { content_type: IMAGE, content: include_str!("../assets/icon.svg") }),
    (&["app", "main.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/main.js") }),
    (&["app", "agent.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/agent.js") }),
    (&["app", "executor.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/executor.js") }),
    (&["app", "parts.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/parts.js") }),
    (&["app", "task.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/task.js") }),
    (&["app", "cluster.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/cluster.js") }),
    (&["app", "details.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/details.js") }),
    (&["app", "element.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/element.js") }),
    (&["app", "pages.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/pages.js") }),
    (&["app", "sandbox.js"], Asset { content_type: SCRIPT, content: include_str!("../assets/sandbox.js") }),
];

/// The file at a path of components.
pub fn asset(path: &[String]) -> Option<Asset> {
    let found = ASSETS.iter().find(|(own, _)| own.iter().copied().eq(path.iter().map(String::as_str)));
    found.map(|(_, asset)| *asset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Option<Asset> {
        asset(&path.split('/').filter(|part| !part.is_empty()).map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn page_loads_only_existing_assets() {
        let page = at("/").unwrap().content;
        for part in page.split(['"', '\'']).filter(|part| part.starts_with("/app/")) {
            assert!(at(part).is_some(), "{part}");
        }
        assert!(!page.contains("<script>") && !page.contains(" style="), "nothing inline");
        assert!(at("/app/nope.js").is_none() && at("/app").is_none());
    }

    #[test]
    fn modules_import_only_each_other() {
        for (path, asset) in ASSETS.iter().filter(|(_, asset)| asset.content_type == SCRIPT) {
            for line in asset.content.lines().filter(|line| line.starts_with("import ")) {
                let from = line.rsplit('"').nth(1).unwrap();
                let name = from.strip_prefix("./").unwrap_or_else(|| panic!("{path:?} imports {from}"));
                assert!(at(&format!("app/{name}")).is_some(), "{path:?} imports {from}");
            }
            for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!asset.content.contains(forbidden), "{path:?} uses {forbidden}");
            }
        }
    }
}
