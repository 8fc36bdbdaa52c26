//! Path rules: which endpoint a path means.
//!
//! The program's own endpoints answer with and without its prefix (`/master/state` is `/state`); the longest
//! registered beginning of a path wins (`/state/x` is `/state`).

use std::collections::BTreeMap;

use tepui_http::HttpError;

use crate::common::{self, ProcessInfo};
use crate::endpoint::{Endpoint, Needs, Row};
use crate::help::Help;

/// The endpoints of one program.
#[derive(Debug)]
pub struct Router<P, C> {
    prefix: &'static str,
    routes: Vec<Route<P, C>>,
    /// By their first component, which leaves few to compare; the root has none.
    begins: BTreeMap<Option<&'static str>, Vec<usize>>,
}

#[derive(Debug)]
struct Route<P, C> {
    components: Vec<&'static str>,
    endpoint: Endpoint<P, C>,
    /// Answers below the program's prefix too.
    prefixed: bool,
}

impl<P: ProcessInfo, C> Router<P, C> {
    /// The endpoints of every program and more. `own` answer with and without `/prefix`, `shared` only without; `logs` is
    /// the action for the content of files.
    pub fn new<const O: usize, const S: usize>(
        prefix: &'static str,
        own: [Row<P, C>; O],
        shared: [Row<P, C>; S],
        logs: Needs,
    ) -> Self {
        let own = own.into_iter().chain(common::own());
        Self::of(prefix, own, shared.into_iter().chain(common::shared(logs)))
    }
}

impl<P, C> Router<P, C> {
    pub(crate) fn of(
        prefix: &'static str,
        own: impl IntoIterator<Item = Row<P, C>>,
        shared: impl IntoIterator<Item = Row<P, C>>,
    ) -> Self {
        let route = |prefixed: bool| {
            move |row: Row<P, C>| {
                let components = row.0.split('/').filter(|part| !part.is_empty()).collect();
                Route { components, endpoint: Endpoint::new(row), prefixed }
            }
        };
        let routes: Vec<_> =
            own.into_iter().map(route(true)).chain(shared.into_iter().map(route(false))).collect();
        let mut begins: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (place, route) in routes.iter().enumerate() {
            begins.entry(route.components.first().copied()).or_default().push(place);
        }
        Self { prefix, routes, begins }
    }

    /// The endpoint of a path and the components behind its own.
    pub fn find(&self, components: &[String]) -> Result<(&Endpoint<P, C>, Vec<String>), HttpError> {
        let (place, rest) = self.place(components).ok_or_else(HttpError::not_found)?;
        Ok((&self.routes[place].endpoint, rest.to_vec()))
    }

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
                (true, _) => help.add(self.prefix, name(&route.components), route.endpoint.help),
                (false, Some((part, rest))) => help.add(part, name(rest), route.endpoint.help),
                (false, None) => (),
            }
        }
        help
    }
}

#[cfg(test)]
mod tests {
    use tepui_http::components;

    use super::*;
    use crate::endpoint::tests::row;

    #[test]
    fn paths_resolve_to_endpoints() {
        let router = Router::of(
            "slave(1)",
            [
                row("/state", "state"),
                row("/api/v1", "operator"),
                row("/api/v1/executor", "executor"),
                row("/", "index"),
            ],
            [row("/version", "version")],
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
            let found = components(path).map(|components| {
                let (endpoint, rest) = router.find(&components).ok()?;
                Some((endpoint.help, rest.join(" ")))
            });
            let found = found.map_err(|error| error.status.as_u16());
            let expected = expected.map(|found| found.map(|(name, rest)| (name, rest.to_owned())));
            assert_eq!(found, expected, "{path}");
        }
    }
}
