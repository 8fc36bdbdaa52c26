//! Calls about images: lists of all engines, and what goes to engines that have an image.

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::request;
use super::merge::{image_list, is_image, is_of_repository};
use super::route::with_query;
use super::targets::{Target, fan_out};
use super::{reply, route};
use crate::body::{self, Body};
use crate::version::API_VERSION;

impl Api {
    pub async fn image_list(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let mut filters = call.query.filters()?;
        if let Some(reference) = call.query.get("filter") {
            filters = filters.with("reference", reference); // Before API 1.28.
        }
        let images = match call.query.is_true("all") {
            true => self.all_images().await?,
            false => self.tagged_images().await,
        };
        Ok(reply::json(StatusCode::OK, &Value::Array(image_list(images, &filters)?)))
    }

    /// From the lists that are kept anyway.
    async fn tagged_images(&self) -> Vec<(String, Value)> {
        self.settle().await;
        let mut images = Vec::new();
        for target in self.engines() {
            let snapshot = self.handle().snapshot(&target.agent);
            let own = snapshot.iter().flat_map(|snapshot| snapshot.images.iter());
            images.extend(own.map(|image| (target.name.clone(), image.clone())));
        }
        images
    }

    /// Also those that are only layers of others: the engines are asked.
    async fn all_images(&self) -> Result<Vec<(String, Value)>, ApiError> {
        let path = format!("/v{}/images/json?all=1", API_VERSION.text);
        let answers = fan_out(self.engines(), |target| {
            let path = path.clone();
            async move { target.client.get(&path).await }
        })
        .await;
        let mut images = Vec::new();
        for (target, answer) in answers {
            if let Value::Array(own) = answer? {
                images.extend(own.into_iter().map(|image| (target.name.clone(), image)));
            }
        }
        Ok(images)
    }

    /// Healthy engines that have an image, by their lists; if none lists it, by asking.
    pub async fn with_image(&self, named: &str) -> Result<Vec<Target>, ApiError> {
        self.settle().await;
        let mut engines = self.some_engines()?;
        let has = |target: &Target| {
            let snapshot = self.handle().snapshot(&target.agent);
            snapshot.is_some_and(|snapshot| snapshot.images.iter().any(|image| is_image(image, named)))
        };
        let listed: Vec<Target> = engines.iter().filter(|target| has(target)).cloned().collect();
        if !listed.is_empty() {
            return Ok(listed);
        }
        let path = format!("/v{}/images/{}/json", API_VERSION.text, route::escape_path(named));
        let answers = fan_out(std::mem::take(&mut engines), |target| {
            let request = request(Method::GET, &path, http::HeaderMap::new(), body::empty());
            async move { Ok::<_, ApiError>(target.client.call(request?).await?.status()) }
        })
        .await;
        let found =
            answers.into_iter().filter(|(_, status)| status.as_ref().is_ok_and(StatusCode::is_success));
        let found: Vec<Target> = found.map(|(target, _)| target).collect();
        match found.is_empty() {
            true => Err(ApiError::not_found(format!("No such image: {named}"))),
            false => Ok(found),
        }
    }

    /// Healthy engines that have what a push names: one tag, or any tag of the repository.
    async fn with_pushed(&self, call: &Call) -> Result<Vec<Target>, ApiError> {
        let repository = &call.matched.name;
        if let Some(tag) = call.query.get("tag") {
            return self.with_image(&pulled_name(repository, Some(tag))).await;
        }
        self.settle().await;
        let mut engines = self.some_engines()?;
        engines.retain(|target| {
            let snapshot = self.handle().snapshot(&target.agent);
            let images = snapshot.iter().flat_map(|snapshot| snapshot.images.iter());
            images.into_iter().any(|image| is_of_repository(image, repository))
        });
        match engines.is_empty() {
            true => Err(ApiError::not_found(format!(
                "An image does not exist locally with the tag: {repository}"
            ))),
            false => Ok(engines),
        }
    }

    /// To one engine that has the image.
    pub async fn image_read(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let mut engines = match call.matched.action.as_str() {
            "push" => self.with_pushed(&call).await?,
            _ => self.with_image(&call.matched.name).await?,
        };
        let target = engines.swap_remove(0);
        let path = call.matched.engine_path("images", &call.matched.name, call.raw_query());
        self.forward(call, &target, &path).await
    }

    /// One archive comes from one engine, which must have all of the images.
    pub async fn images_save(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let names: Vec<&str> = call.query.all("names").flat_map(|names| names.split(',')).collect();
        let mut engines = self.some_engines()?;
        for name in &names {
            let having = self.with_image(name).await.unwrap_or_default();
            engines.retain(|target| having.iter().any(|other| other.agent == target.agent));
        }
        let missing =
            || format!("Unable to find a healthy engine containing all images: [{}]", names.join(" "));
        let target = engines.first().cloned().ok_or_else(|| ApiError::not_found(missing()))?;
        let path = with_query(format!("{}/images/get", call.matched.version), call.raw_query());
        self.forward(call, &target, &path).await
    }

    pub async fn image_tag(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let path = call.matched.engine_path("images", &call.matched.name, call.raw_query());
        let answers = self.at_engines_with(&call, Method::POST, &path).await?;
        for (target, (status, answer)) in answers {
            if !status.is_success() {
                return Err(engine_error(&target, status, &answer));
            }
        }
        Ok(reply::empty(StatusCode::CREATED))
    }

    /// From every engine that has it. An engine that cannot remove it makes the call fail, after all were asked.
    pub async fn image_remove(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let path = call.matched.engine_path("images", &call.matched.name, call.raw_query());
        let answers = self.at_engines_with(&call, Method::DELETE, &path).await?;
        let mut removed: Vec<Value> = Vec::new();
        let mut failed = None;
        for (target, (status, answer)) in answers {
            match (status.is_success(), answer) {
                (true, Value::Array(list)) => {
                    for entry in list {
                        if !removed.contains(&entry) {
                            removed.push(entry);
                        }
                    }
                }
                (true, _) => (),
                (false, answer) => failed = failed.or(Some(engine_error(&target, status, &answer))),
            }
        }
        failed.map_or_else(|| Ok(reply::json(StatusCode::OK, &Value::Array(removed))), Err)
    }

    async fn at_engines_with(
        &self,
        call: &Call,
        method: Method,
        path: &str,
    ) -> Result<Vec<(Target, (StatusCode, Value))>, ApiError> {
        let engines = self.with_image(&call.matched.name).await?;
        let answers = fan_out(engines, |target| {
            let request = request(method.clone(), path, http::HeaderMap::new(), body::empty());
            async move { Ok::<_, ApiError>(target.client.call(request?).await?) }
        })
        .await;
        let mut all = Vec::new();
        for (target, answer) in answers {
            self.touch(&target.agent);
            let answer = answer?;
            let document = serde_json::from_slice(answer.body()).unwrap_or_default();
            all.push((target, (answer.status(), document)));
        }
        Ok(all)
    }

    /// Healthy engines that constraints allow: `node==node-0`, `storagedriver==overlay2`. Soft ones count if any engine is left.
    pub fn constrained_engines(&self, constraints: &[String]) -> Result<Vec<Target>, ApiError> {
        let mut engines = self.some_engines()?;
        let view = self.handle().view();
        for text in constraints {
            let expression = tepui_swarm::Expression::parse(text)
                .map_err(|error| ApiError::bad(format!("error from constraint filter: {error}")))?;
            let holds = |target: &Target| match expression.key.as_str() {
                "node" => expression.holds([target.agent.as_str(), target.name.as_str()]),
                key => {
                    let labels =
                        view.agents.get(&target.agent).map(|agent| agent.labels()).unwrap_or_default();
                    expression.holds([labels.get(key).map(String::as_str).unwrap_or_default()])
                }
            };
            let left: Vec<Target> = engines.iter().filter(|target| holds(target)).cloned().collect();
            match (left.is_empty(), expression.soft) {
                (false, _) => engines = left,
                (true, true) => (),
                (true, false) => {
                    return Err(ApiError::failed(format!(
                        "Unable to find a node that satisfies the following conditions \n[{expression}]"
                    )));
                }
            }
        }
        Ok(engines)
    }
}

pub fn engine_error(target: &Target, status: StatusCode, answer: &Value) -> ApiError {
    let message = answer["message"].as_str().map_or_else(|| status.to_string(), str::to_owned);
    ApiError::new(status, format!("{}: {message}", target.name))
}

/// The parameters of a pull as one name.
pub fn pulled_name(from: &str, tag: Option<&str>) -> String {
    let from = super::merge::familiar(from);
    match tag {
        Some(digest) if digest.contains(':') => format!("{from}@{digest}"),
        Some(tag) => format!("{from}:{tag}"),
        None => from.to_owned(),
    }
}

/// A line of progress.
pub fn progress(id: &str, status: String) -> Value {
    json!({"id": id, "status": status})
}

/// The line that makes the call fail at the client.
pub fn progress_error(message: &str) -> Value {
    json!({"errorDetail": {"message": message}, "error": message})
}

/// A parameter that the docker CLI does not have: which engines.
pub fn constraints(call: &Call) -> Vec<String> {
    call.query.all("constraint").map(str::to_owned).collect()
}

/// The query for the engines.
pub fn engine_query(call: &Call) -> String {
    call.query.clone().without("constraint").text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pulled_images_are_normalised() {
        for (from, tag, expected) in [
            ("docker.io/library/busybox", Some("latest"), "busybox:latest"),
            ("busybox", None, "busybox"),
            ("host:5000/a", Some("b"), "host:5000/a:b"),
            ("a", Some("sha256:00"), "a@sha256:00"),
        ] {
            assert_eq!(pulled_name(from, tag), expected);
        }
    }
}
