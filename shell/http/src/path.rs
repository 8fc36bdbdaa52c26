//! Path rules: which endpoint a path means.
//!
//! A path is its non-empty components, percent-decoded. The program's own endpoints answer with and without its
//! prefix (`/master/state` is `/state`); the longest registered beginning of a path wins (`/state/x` is `/state`).

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use crate::HttpError;
use crate::help::Help;

/// A path, what answers there, and a sentence about it.
pub type RouteRow<E> = (&'static str, E, &'static str);

/// The endpoints of one program.
#[derive(Debug)]
pub struct Router<E> {
    prefix: &'static str,
    routes: Vec<Route<E>>,
    /// By their first component, which leaves few to compare; the root has none.
    begins: BTreeMap<Option<&'static str>, Vec<usize>>,
}

#[derive(Debug)]
struct Route<E> {
    components: Vec<&'static str>,
    endpoint: E,
    about: &'static str,
    /// Answers below the program's prefix too.
    prefixed: bool,
}

impl<E: Copy> Router<E> {
    /// `own` answer with and without `/prefix`, `shared` only without.
    pub fn new(prefix: &'static str, own: &[RouteRow<E>], shared: &[RouteRow<E>]) -> Self {
        let route = |prefixed: bool| {
            move |(path, endpoint, about): &RouteRow<E>| Route {
                components: path.split('/').filter(|part| !part.is_empty()).collect(),
                endpoint: *endpoint,
                about,
                prefixed,
            }
        };
        let routes: Vec<Route<E>> =
            own.iter().map(route(true)).chain(shared.iter().map(route(false))).collect();
        let mut begins: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (place, route) in routes.iter().enumerate() {
            begins.entry(route.components.first().copied()).or_default().push(place);
        }
        Self { prefix, routes, begins }
    }

    /// The endpoint of a path and the components behind its own.
    pub fn find(&self, components: &[String]) -> Option<(E, Vec<String>)> {
        let (place, rest) = self.place(components)?;
        Some((self.routes[place].endpoint, rest.to_vec()))
    }
}

impl<E> Router<E> {
    /// Which of the routes a path means, and the components behind its own.
    pub(crate) fn place<'p>(&self, components: &'p [String]) -> Option<(usize, &'p [String])> {
        let stripped = components.split_first().filter(|(first, _)| *first == self.prefix);
        let path = stripped.map_or(components, |(_, rest)| rest);
        let begins = [path.first().map(String::as_str), None];
        begins
            .iter()
            .filter_map(|first| self.begins.get(first))
            .flatten()
            .map(|place| (*place, &self.routes[*place]))
            .filter(|(_, route)| route.prefixed || stripped.is_none())
            .filter(|(_, route)| path.len() >= route.components.len())
            .filter(|(_, route)| route.components.iter().zip(path).all(|(own, given)| own == given))
            .max_by_key(|(_, route)| route.components.len())
            .map(|(place, route)| (place, &path[route.components.len()..]))
    }

    /// What there is to say about the routes: the program's own below its prefix, others below their first component.
    pub fn help(&self) -> Help {
        let mut help = Help::default();
        for route in &self.routes {
            let name = |components: &[&str]| format!("/{}", components.join("/"));
            match (route.prefixed, route.components.split_first()) {
                (true, _) => help.add(self.prefix, name(&route.components), route.about),
                (false, Some((part, rest))) => help.add(part, name(rest), route.about),
                (false, None) => (),
            }
        }
        help
    }
}

/// The components of a request's path.
pub fn components(path: &str) -> Result<Vec<String>, HttpError> {
    if !path.starts_with('/') {
        return Err(HttpError::bad_request("Request URL path must be absolute"));
    }
    let decoded: Result<Vec<String>, _> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8().map(String::from))
        .collect();
    let decoded = decoded.map_err(|_| HttpError::bad_request("Request URL path is not UTF-8"))?;
    match decoded.iter().any(|part| part.starts_with("..")) {
        true => Err(HttpError::not_found()),
        false => Ok(decoded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_endpoints() {
        let router = Router::new(
            "slave(1)",
            &[
                ("/state", "state", ""),
                ("/api/v1", "operator", ""),
                ("/api/v1/executor", "executor", ""),
                ("/", "index", ""),
            ],
            &[("/version", "version", "")],
        );
        for (path, expected) in [
            ("/state", Ok(Some(("state", "")))),
            ("/state/", Ok(Some(("state", "")))),
            ("//state", Ok(Some(("state", "")))),
            ("/slave(1)/state", Ok(Some(("state", "")))),
            ("/slave%281%29/state", Ok(Some(("state", "")))),
            ("/state/any/thing", Ok(Some(("state", "any thing")))),
            ("/api/v1", Ok(Some(("operator", "")))),
            ("/api/v1/scheduler", Ok(Some(("operator", "scheduler")))),
            ("/api/v1/executor", Ok(Some(("executor", "")))),
            ("/version", Ok(Some(("version", "")))),
            ("/slave(1)/version", Ok(Some(("index", "version")))),
            ("/", Ok(Some(("index", "")))),
            ("/slave(1)", Ok(Some(("index", "")))),
            ("/a/../state", Err(404)),
            ("/%2e%2e/state", Err(404)),
            ("*", Err(400)),
        ] {
            let found = components(path).map(|components| router.find(&components));
            let found = found.map_err(|error| error.status.as_u16());
            let expected =
                expected.map(|e| e.map(|(e, rest)| (e, rest.split_whitespace().map(String::from).collect())));
            assert_eq!(found, expected, "{path}");
        }
    }
}
