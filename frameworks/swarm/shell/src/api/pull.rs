//! Images to all engines: pulls, imports and loads. One line of progress per engine at its beginning and its end.
//!
//! The body of a load is read once and passed on to every engine; the slowest one sets the pace. An engine that fails makes
//! the call fail, after the others are done.

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tepui_types::AgentId;
use tokio::task::JoinSet;

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::{end_to_end, request};
use super::images::{constraints, engine_query, progress, progress_error, pulled_name};
use super::reply;
use super::route::{escape, with_query};
use super::targets::Target;
use crate::body::{self, Body, Pieces};

/// The longest line of progress of an engine.
const LINE_BYTES_MAX: usize = 1 << 20;
const REGISTRY_AUTH: HeaderName = HeaderName::from_static("x-registry-auth");
/// Engines that pull at the same time.
const PULLS_MAX: usize = 32;

impl Api {
    /// A pull by `fromImage`, an import by `fromSrc`.
    pub async fn image_create(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let engines = self.constrained_engines(&constraints(&call))?;
        let path = with_query(format!("{}/images/create", call.matched.version), &engine_query(&call));
        match (call.query.get("fromImage"), call.query.get("fromSrc")) {
            (Some(from), _) => {
                let name = pulled_name(from, call.query.get("tag"));
                Ok(self.pull(engines, &path, end_to_end(&call.headers), name))
            }
            (None, Some("-")) => self.load_to(engines, call, path, "Importing").await,
            (None, Some(source)) => {
                let name = source.to_owned();
                Ok(self.pull(engines, &path, end_to_end(&call.headers), name))
            }
            (None, None) => Err(ApiError::bad("one of the parameters fromImage and fromSrc is required")),
        }
    }

    pub async fn image_load(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let engines = self.constrained_engines(&constraints(&call))?;
        let path = with_query(format!("{}/images/load", call.matched.version), &engine_query(&call));
        self.load_to(engines, call, path, "Loading").await
    }

    /// For a create with credentials: on the engine that has not the image. They are in no record and no log.
    pub async fn pull_with(
        &self,
        call: &Call,
        credentials: HeaderMap,
        image: &str,
        agent: &AgentId,
    ) -> Result<(), ApiError> {
        let (from, tag) = split_reference(image);
        let query = format!("fromImage={}&tag={}", escape(from), escape(tag));
        let path = with_query(format!("{}/images/create", call.matched.version), &query);
        let target = self.engines().into_iter().find(|target| target.agent == *agent);
        let target =
            target.ok_or_else(|| ApiError::failed("the engine that was to pull the image is lost"))?;
        let request = request(Method::POST, &path, credentials, body::empty())?;
        let outcome = follow(&target, request).await;
        self.touch(agent);
        outcome.map_err(|error| ApiError::failed(format!("{}: {error}", target.name)))
    }

    fn pull(&self, engines: Vec<Target>, path: &str, headers: HeaderMap, name: String) -> Response<Body> {
        let (pieces, body) = body::channel();
        let (api, path) = (self.clone(), path.to_owned());
        let mut headers = headers;
        headers.remove(header::CONTENT_LENGTH);
        // It ends when all engines have answered or the client leaves.
        tokio::spawn(async move {
            let room = std::sync::Arc::new(tokio::sync::Semaphore::new(PULLS_MAX));
            let mut pulls = JoinSet::new();
            for target in engines {
                let request = request(Method::POST, &path, headers.clone(), body::empty());
                let (room, pieces, label) = (room.clone(), pieces.clone(), format!("Pulling {name}..."));
                pulls.spawn(async move {
                    let _permit = room.acquire().await.expect("the semaphore is never closed");
                    send(&pieces, &progress(&target.name, label.clone())).await;
                    let outcome = match request {
                        Ok(request) => follow(&target, request).await,
                        Err(error) => Err(error.message),
                    };
                    report(&pieces, &target, &label, "downloaded", outcome, target.agent.clone()).await
                });
            }
            api.finish(pulls, pieces).await;
        });
        reply::typed(StatusCode::OK, "application/json", body)
    }

    /// Passes the body of the call on to every engine.
    async fn load_to(
        &self,
        engines: Vec<Target>,
        call: Call,
        path: String,
        verb: &'static str,
    ) -> Result<Response<Body>, ApiError> {
        let (pieces, response) = body::channel();
        let mut headers = end_to_end(&call.headers);
        headers.remove(header::CONTENT_LENGTH);
        let (mut loads, mut inputs) = (JoinSet::new(), Vec::new());
        for target in engines {
            let (input, body) = body::channel();
            inputs.push(input);
            let request = request(Method::POST, &path, headers.clone(), body)?;
            let (pieces, label) = (pieces.clone(), format!("{verb} Image..."));
            loads.spawn(async move {
                send(&pieces, &progress(&target.name, label.clone())).await;
                let outcome = follow(&target, request).await;
                report(&pieces, &target, &label, "loaded", outcome, target.agent.clone()).await
            });
        }
        let api = self.clone();
        // It ends with the client's body and the answers of the engines, or when the client leaves.
        tokio::spawn(async move {
            let copied = copy_to_all(call.request.into_body(), inputs);
            let finished = api.finish(loads, pieces);
            tokio::join!(copied, finished);
        });
        Ok(reply::typed(StatusCode::OK, "application/json", response))
    }

    async fn finish(&self, mut asked: JoinSet<Outcome>, pieces: Pieces) {
        let mut errors = Vec::new();
        loop {
            let outcome = tokio::select! {
                outcome = asked.join_next() => outcome,
                () = pieces.closed() => return, // Dropping the set cancels what is under way.
            };
            match outcome {
                None => break,
                Some(Ok(outcome)) => {
                    self.touch(&outcome.agent);
                    errors.extend(outcome.error);
                }
                Some(Err(error)) => errors.push(error.to_string()),
            }
        }
        if !errors.is_empty() {
            send(&pieces, &progress_error(&errors.join("\n"))).await;
        }
    }
}

/// The credentials of a client for registries, if it sent any.
pub fn credentials(call: &Call) -> Option<HeaderMap> {
    let auth = call.headers.get(REGISTRY_AUTH)?;
    Some(HeaderMap::from_iter([(REGISTRY_AUTH, auth.clone())]))
}

/// Name and tag or digest; without either, `latest`.
fn split_reference(image: &str) -> (&str, &str) {
    if let Some(split) = image.split_once('@') {
        return split;
    }
    // A colon before the last slash belongs to the port of the registry.
    match image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        Some(split) => split,
        None => (image, "latest"),
    }
}

struct Outcome {
    agent: AgentId,
    error: Option<String>,
}

async fn report(
    pieces: &Pieces,
    target: &Target,
    label: &str,
    done: &str,
    outcome: Result<(), String>,
    agent: AgentId,
) -> Outcome {
    let (end, error) = match outcome {
        Ok(()) => (done.to_owned(), None),
        Err(error) => (error.clone(), Some(format!("{}: {error}", target.name))),
    };
    send(pieces, &progress(&target.name, format!("{label} : {end}"))).await;
    Outcome { agent, error }
}

async fn send(pieces: &Pieces, line: &Value) {
    let _ = pieces.send(Ok(Bytes::from(format!("{line}\n")))).await; // The client may have left.
}

/// Reads the progress of one engine to its end; an error in it is that of the call.
async fn follow(target: &Target, request: http::Request<Body>) -> Result<(), String> {
    let answer = target.client.send(request).await.map_err(|fault| fault.to_string())?;
    if !answer.status().is_success() {
        let body = target.client.collect(answer.into_body()).await.map_err(|fault| fault.to_string())?;
        return Err(crate::engine::message(&body));
    }
    let mut lines = Lines::default();
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Ok(data) = frame.into_data() {
            lines.take(&data)?;
        }
    }
    lines.end()
}

/// Looks for an error in lines of progress.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        for byte in bytes {
            match byte {
                b'\n' => self.end()?,
                byte if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => return Err(format!("a line of progress is longer than {LINE_BYTES_MAX} bytes")),
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let line: Value = serde_json::from_slice(&std::mem::take(&mut self.line)).unwrap_or_default();
        line["error"].as_str().map_or(Ok(()), |error| Err(error.to_owned()))
    }
}

/// An engine that does not take its copy any more is left out; its own answer says why.
async fn copy_to_all(mut from: Incoming, mut inputs: Vec<Pieces>) {
    while let Some(frame) = from.frame().await {
        let piece = match frame.map(|frame| frame.into_data()) {
            Ok(Ok(piece)) => piece,
            Ok(Err(_)) => continue,
            Err(error) => {
                for input in &inputs {
                    let _ = input.send(Err(error.to_string().into())).await; // The engine may have left.
                }
                return;
            }
        };
        let mut left = Vec::with_capacity(inputs.len());
        for input in inputs {
            if input.send(Ok(piece.clone())).await.is_ok() {
                left.push(input);
            }
        }
        inputs = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_a_tag_or_digest() {
        for (image, expected) in [
            ("busybox", ("busybox", "latest")),
            ("busybox:1.36", ("busybox", "1.36")),
            ("host:5000/a", ("host:5000/a", "latest")),
            ("host:5000/a:b", ("host:5000/a", "b")),
            ("a@sha256:00", ("a", "sha256:00")),
        ] {
            assert_eq!(split_reference(image), expected, "{image}");
        }
    }

    #[test]
    fn errors_in_progress_are_found() {
        for (bytes, expected) in [
            ("", Ok(())),
            ("{\"status\":\"ok\"}\n{\"status\":\"done\"}\n", Ok(())),
            (
                "{\"status\":\"ok\"}\n{\"errorDetail\":{\"message\":\"m\"},\"error\":\"not found\"}\n",
                Err("not found"),
            ),
            ("{\"error\":\"last\"}", Err("last")),
            ("not json\n", Ok(())),
        ] {
            for size in 1..=bytes.len().max(1) {
                let mut lines = Lines::default();
                let taken = bytes.as_bytes().chunks(size).try_for_each(|chunk| lines.take(chunk));
                let outcome = taken.and_then(|()| lines.end());
                assert_eq!(outcome, expected.map_err(str::to_owned), "{bytes} {size}");
            }
        }
        assert!(Lines::default().take(&vec![b'x'; LINE_BYTES_MAX + 1]).is_err());
    }
}
