//! Calls about containers: lists, creates, and what goes on to the engine of one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tepui_swarm::{Container, ContainerSpec, Rejection, View};
use tepui_types::{AgentId, TaskId};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::document_request;
use super::ps::{Entry, Ps};
use super::pull::credentials;
use super::row::{Place, Row, end_reason};
use super::rows::EngineRows;
use super::targets::{Found, fan_out, find_container, reachable_host};
use super::{reply, route};
use crate::body::{self, Body};
use crate::engine::{CALL_TIMEOUT, EngineFault};
use crate::version::API_VERSION;

/// A machine that is busy for longer answers with its former view.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);
const NANOS_PER_THOUSANDTH: i64 = 1_000_000;
const SHARES_PER_CPU: i64 = 1024;
const LABEL_WARNING: &str = "the label res-type is set to the type of the resources of the container";

impl Api {
    pub async fn container_list(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let ps = Ps::parse(&call.query)?;
        self.settle().await;
        let view = self.handle().view();
        for name in ps.references() {
            find_container(&view, name)?;
        }
        let sized = if ps.size { Some(self.sized_rows(&view).await) } else { None };
        let engines = self.engine_rows(&view, sized);
        let text = render(&view, &ps, &engines);
        Ok(reply::json_bytes(StatusCode::OK, text.into_bytes()))
    }

    /// The rows of each agent that has containers of ours.
    fn engine_rows(
        &self,
        view: &View,
        sized: Option<Vec<(AgentId, EngineList)>>,
    ) -> Vec<(AgentId, EngineList)> {
        if let Some(sized) = sized {
            return sized;
        }
        let list = |(id, agent): (&AgentId, &Arc<tepui_swarm::Agent>)| {
            let list = self.rows_of(id, agent).map_or(EngineList::None, EngineList::Kept);
            (id.clone(), list)
        };
        self.forget_rows(view);
        view.agents.iter().map(list).collect()
    }

    /// Sizes are not part of the lists that are kept: the engines are asked.
    async fn sized_rows(&self, view: &View) -> Vec<(AgentId, EngineList)> {
        let filters = json!({"label": [tepui_swarm::TASK_LABEL]}).to_string();
        let path = format!(
            "/v{}/containers/json?all=1&size=1&filters={}",
            API_VERSION.text,
            route::escape(&filters)
        );
        let answers = fan_out(self.engines(), |target| {
            let path = path.clone();
            async move { target.client.get(&path).await }
        })
        .await;
        let rows = answers.into_iter().filter_map(|(target, answer)| {
            let agent = view.agents.get(&target.agent)?;
            let place = Place { engine: &target.name, ip: reachable_host(agent) };
            let listed = answer.ok()?;
            let rows = listed.as_array()?.iter().filter_map(|it| Row::of_listed(it, &place));
            Some((target.agent.clone(), EngineList::Sized(rows.map(|row| (row.id.clone(), row)).collect())))
        });
        rows.collect()
    }

    pub async fn container_create(&self, mut call: Call) -> Result<Response<Body>, ApiError> {
        let body = call.bytes().await?;
        let revocable = self.handle().manage().cluster.revocable;
        let spec = ContainerSpec::parse(&body, revocable)?;
        let name = call.query.get("name").map(|name| name.trim_start_matches('/').to_owned());
        let mut created = self.handle().create(name.clone(), spec.clone()).await;
        if let (Err(Rejection::Conflict(_)), Some(taken)) = (&created, &name) {
            // Its container may have been removed by the engine itself (`--rm`) or by another client.
            if self.release_removed(taken).await {
                created = self.handle().create(name.clone(), spec.clone()).await;
            }
        }
        if let (Err(Rejection::NoImage { agent, .. }), Some(credentials)) = (&created, credentials(&call)) {
            self.pull_with(&call, credentials, &spec.image, agent).await?;
            let mut there = spec.clone();
            there.agents = Some(vec![agent.clone()]);
            created = self.handle().create(name.clone(), there).await;
        }
        // The image may be in no registry: an engine has built or loaded it.
        if matches!(created, Err(Rejection::NoImage { .. }))
            && let Ok(having) = self.with_image(&spec.image).await
        {
            let mut near = spec.clone();
            near.agents = Some(having.into_iter().map(|target| target.agent).collect());
            created = self.handle().create(name, near).await.or(created);
        }
        let created = created?;
        self.published(|view| {
            view.containers.get(&created.task).is_none_or(|it| it.occupant.id == created.id)
        })
        .await;
        if let Some(container) = self.handle().view().containers.get(&created.task) {
            self.touch(&AgentId::new(&*container.agent));
        }
        let is_replaced = spec.labels.contains_key(tepui_swarm::RES_TYPE);
        let warnings: Vec<&str> = is_replaced.then_some(LABEL_WARNING).into_iter().collect();
        Ok(reply::json(StatusCode::CREATED, &json!({"Id": created.id, "Warnings": warnings})))
    }

    /// Whether a container is gone from its engine; then the manager forgets it.
    async fn release_removed(&self, named: &str) -> bool {
        let Ok(Found { container, target }) = self.find(named) else { return false };
        if container.occupant.id.is_empty() {
            return false;
        }
        let path = format!("/v{}/containers/{}/json", API_VERSION.text, container.occupant.id);
        let Ok(request) = super::forward::request(Method::GET, &path, http::HeaderMap::new(), body::empty())
        else {
            return false;
        };
        let is_gone =
            target.client.call(request).await.is_ok_and(|answer| answer.status() == StatusCode::NOT_FOUND);
        if is_gone {
            self.forget(&container).await;
        }
        is_gone
    }

    /// The engine has no more of the container: nor has the next view.
    async fn forget(&self, container: &Container) {
        let task = TaskId::new(&*container.task);
        self.handle().removed(task.clone()).await;
        self.published(|view| !view.containers.contains_key(&task)).await;
    }

    /// Waits until what a call did is in the view, so that the client's next call finds it.
    async fn published(&self, holds: impl Fn(&View) -> bool) {
        let mut views = self.handle().views();
        let published = views.wait_for(|view| holds(view));
        if tokio::time::timeout(PUBLISH_TIMEOUT, published).await.is_err() {
            tracing::warn!("a change was not published in time");
        }
    }

    /// To the engine of the container, which does not change by it.
    pub async fn container_read(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let path = container_path(&call, &found);
        self.forward(call, &found.target, &path).await
    }

    /// To the engine of the container; readers wait for a newer list after each piece of the answer.
    pub async fn container_change(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let path = container_path(&call, &found);
        let awaits_removal = call.matched.action == "wait" && call.query.get("condition") == Some("removed");
        let response = self.forward(call, &found.target, &path).await?;
        self.touch(&found.target.agent);
        let (api, agent) = (self.clone(), found.target.agent.clone());
        let response = response.map(|body| body::observed(body, move || api.touch(&agent)));
        match awaits_removal && response.status().is_success() {
            true => Ok(self.until_released(response, found)),
            false => Ok(response),
        }
    }

    /// The head goes out at once; the exit code once the name of the removed container is free again.
    fn until_released(&self, response: Response<Body>, found: Found) -> Response<Body> {
        let (pieces, relayed) = body::channel();
        let (head, body) = response.into_parts();
        let api = self.clone();
        // It ends with the client's or the engine's connection.
        tokio::spawn(async move {
            let whole = tokio::select! {
                whole = http_body_util::BodyExt::collect(body) => whole,
                () = pieces.closed() => return,
            };
            api.release_removed(&found.container.occupant.id).await;
            let _ = pieces.send(whole.map(|it| it.to_bytes())).await; // The client may have left.
        });
        Response::from_parts(head, relayed)
    }

    pub async fn container_tunnel(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let path = container_path(&call, &found);
        self.tunnel(call, &found.target, &path, || ()).await
    }

    /// A container whose task has terminated gets another one first, which holds its resources.
    pub async fn container_start(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let held = self.handle().hold(TaskId::new(&*found.container.task)).await?;
        let id = &found.container.occupant.id;
        self.published(|view| view.containers.get(&held.task).is_none_or(|it| it.occupant.id == *id)).await;
        self.container_change(call).await
    }

    /// By force also while its engine is down: what is left of it there is removed when the engine is back.
    pub async fn container_remove(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let container = find_container(&self.handle().view(), &call.matched.name)?;
        let found = match self.find(&call.matched.name) {
            Err(_) if call.query.is_true("force") => {
                self.forget(&container).await;
                return Ok(reply::empty(StatusCode::NO_CONTENT));
            }
            found => found?,
        };
        let path = container_path(&call, &found);
        let response = self.forward(call, &found.target, &path).await?;
        self.touch(&found.target.agent);
        if response.status().is_success() || response.status() == StatusCode::NOT_FOUND {
            self.forget(&found.container).await;
        }
        Ok(response)
    }

    pub async fn container_rename(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let given = call.query.get("name").unwrap_or_default().trim_start_matches('/');
        let name = found.target.own_part(given).unwrap_or(given).to_owned();
        let api = self.clone();
        // A client that leaves must not leave the name reserved.
        let renamed = tokio::spawn(async move { api.rename(call, found, name).await });
        renamed.await.unwrap_or_else(|error| Err(ApiError::failed(error.to_string())))
    }

    async fn rename(&self, call: Call, found: Found, name: String) -> Result<Response<Body>, ApiError> {
        let task = TaskId::new(&*found.container.task);
        self.handle().rename(task.clone(), name.clone()).await?;
        let query = format!("name={}", route::escape(&name));
        let path = call.matched.engine_path("containers", &found.container.occupant.id, &query);
        let renamed = tokio::time::timeout(CALL_TIMEOUT, self.forward(call, &found.target, &path)).await;
        let response = renamed.unwrap_or_else(|_| {
            let address = found.target.client.address().to_string();
            Err(EngineFault::TimedOut { address, limit: CALL_TIMEOUT }.into())
        });
        match response.as_ref().is_ok_and(|response| response.status().is_success()) {
            true => {
                self.handle().renamed(task.clone(), name.clone()).await;
                self.published(|view| view.containers.get(&task).is_none_or(|it| it.occupant.name == name))
                    .await;
            }
            false => self.handle().rename_failed(name).await,
        }
        self.touch(&found.target.agent);
        response
    }

    /// A task cannot grow: what it holds is the most that the container may be given.
    pub async fn container_update(&self, mut call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let mut document = call.document().await?;
        check_update(&found.container, &mut document)?;
        let path = container_path(&call, &found);
        let response = self.forward_bytes(&call, &found.target, &path, document.to_string()).await?;
        self.touch(&found.target.agent);
        Ok(response)
    }

    pub async fn container_exec(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let found = self.find(&call.matched.name)?;
        let path = container_path(&call, &found);
        let headers = super::forward::end_to_end(&call.headers);
        let body = body::incoming(call.request.into_body());
        let request = super::forward::request(call.method, &path, headers, body)?;
        let answer = target_call(&found, request).await?;
        if let Some(id) = answer.status().is_success().then(|| exec_id(answer.body())).flatten() {
            self.shared.execs.insert(id, found.target.agent);
        }
        Ok(reply::json_bytes(answer.status(), answer.body().to_vec()))
    }

    pub async fn commit(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let named = call.query.get("container").unwrap_or_default().to_owned();
        let found = self.find(&named)?;
        let query = call.query.clone().with("container", &found.container.occupant.id).text();
        let path = route::with_query(format!("{}/commit", call.matched.version), &query);
        let response = self.forward(call, &found.target, &path).await?;
        self.touch(&found.target.agent);
        Ok(response)
    }

    pub async fn containers_prune(&self, call: Call) -> Result<Response<Body>, ApiError> {
        // Containers on the same engines that are not ours stay.
        let filters = call.query.filters()?.with("label", tepui_swarm::TASK_LABEL);
        let query = call.query.clone().with("filters", &filters.text()).text();
        let path = route::with_query(format!("{}/containers/prune", call.matched.version), &query);
        let answers = fan_out(self.engines(), |target| {
            let request = document_request(Method::POST, &path, &json!({}));
            async move { super::prune::answer(&target, request).await }
        })
        .await;
        let merged = super::prune::merge(answers)?;
        let view = self.handle().view();
        for id in merged["ContainersDeleted"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Some(container) = view.find(id) {
                self.forget(container).await;
                self.touch(&AgentId::new(&*container.agent));
            }
        }
        Ok(reply::json(StatusCode::OK, &merged))
    }
}

/// The rows of one engine, as far as there are any.
enum EngineList {
    Kept(EngineRows),
    Sized(BTreeMap<String, Row>),
    /// Never reached by this manager.
    None,
}

impl EngineList {
    fn row(&self, id: &str) -> Option<&Row> {
        match self {
            EngineList::Kept(kept) => kept.rows.get(id),
            EngineList::Sized(rows) => rows.get(id),
            EngineList::None => None,
        }
    }

    fn seconds_since(&self) -> u64 {
        match self {
            EngineList::Kept(kept) => Instant::now().saturating_duration_since(kept.listed).as_secs(),
            EngineList::Sized(_) | EngineList::None => 0,
        }
    }
}

fn render(view: &View, ps: &Ps, engines: &[(AgentId, EngineList)]) -> String {
    let lists: HashMap<&str, &EngineList> =
        engines.iter().map(|(agent, list)| (agent.as_str(), list)).collect();
    let by_agent = view.by_agent();
    let recorded = recorded_rows(view, &by_agent, &lists);
    let entries = by_agent.iter().flat_map(|(id, containers)| {
        let agent = view.agents.get(&AgentId::new(*id));
        let engine = agent.and_then(|agent| agent.engine());
        let engine = engine.map_or([*id, ""], |engine| [engine.name.as_str(), engine.id.as_str()]);
        let (list, is_healthy) = (lists.get(id).copied(), agent.is_some_and(|agent| agent.is_healthy()));
        let recorded = &recorded;
        containers.iter().filter(|it| is_visible(it)).filter_map(move |container| {
            let id = container.occupant.id.as_str();
            let row = list.and_then(|list| list.row(id)).or_else(|| recorded.get(id))?;
            Some(Entry { container, row, engine, is_healthy })
        })
    });
    let created = |name: &str| view.find(name).map(|container| container.created_nanos);
    let passed: HashMap<&str, u64> =
        lists.iter().map(|(agent, list)| (*agent, list.seconds_since())).collect();
    let mut text = String::from("[");
    for (place, entry) in ps.select(entries, created).iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        let passed = passed.get(entry.container.agent.as_str()).copied().unwrap_or(0);
        entry.row.write(&status_text(entry, passed), &mut text);
    }
    text.push_str("]\n");
    text
}

/// Rows of containers that no list has because their engine is down. A healthy engine that does not list one has removed it.
fn recorded_rows<'v>(
    view: &View,
    by_agent: &BTreeMap<&'v str, Vec<&'v Arc<Container>>>,
    lists: &HashMap<&str, &EngineList>,
) -> HashMap<&'v str, Row> {
    let mut recorded = HashMap::new();
    for (id, containers) in by_agent {
        let agent = view.agents.get(&AgentId::new(*id));
        if agent.is_some_and(|agent| agent.is_healthy()) {
            continue;
        }
        let name = agent.map_or_else(|| (*id).to_owned(), |agent| agent.name());
        let list = lists.get(id).copied().unwrap_or(&EngineList::None);
        for container in containers.iter().filter(|it| is_visible(it)) {
            let id = container.occupant.id.as_str();
            if list.row(id).is_none() {
                let row = Row::of_record(container, &Place { engine: &name, ip: "" });
                recorded.extend(row.map(|row| (id, row)));
            }
        }
    }
    recorded
}

/// Whether the engine has created it.
fn is_visible(container: &Container) -> bool {
    !container.occupant.id.is_empty()
}

fn status_text(entry: &Entry<'_>, passed: u64) -> String {
    if !entry.is_healthy {
        return "Host Down".to_owned();
    }
    let own = entry.row.status.text(passed);
    match end_reason(&entry.container.phase) {
        Some(reason) if entry.row.state != "running" => format!("{own} ({reason})"),
        Some(_) | None => own,
    }
}

fn container_path(call: &Call, found: &Found) -> String {
    call.matched.engine_path("containers", &found.container.occupant.id, call.raw_query())
}

/// Amounts above what the task holds are rejected; shares become those of the engine.
fn check_update(container: &Container, document: &mut Value) -> Result<(), ApiError> {
    let spec = ContainerSpec::parse(container.body.as_bytes(), true).ok();
    let amounts = spec.map(|spec| spec.amounts).unwrap_or_default();
    let cpus = amounts.cpus_limit.unwrap_or(amounts.cpus).thousandths();
    let memory = amounts.memory_limit_bytes.unwrap_or(amounts.memory_bytes);
    let above = |field: &str, wanted: i64, held: i64, unit: &str| {
        ApiError::conflict(format!(
            "{field} of {wanted} {unit} is more than the {held} {unit} that the task of this container holds; \
             run a container with more"
        ))
    };
    let number = |document: &Value, field: &str| document[field].as_i64().unwrap_or(0);
    for (field, held) in [("Memory", memory), ("MemoryReservation", memory)] {
        match number(document, field) {
            wanted if wanted > held => return Err(above(field, wanted, held, "bytes")),
            _ => (),
        }
    }
    let nanos = number(document, "NanoCpus");
    if nanos > cpus.saturating_mul(NANOS_PER_THOUSANDTH) {
        return Err(above("NanoCpus", nanos / NANOS_PER_THOUSANDTH, cpus, "thousandths of a cpu"));
    }
    let shares = number(document, "CpuShares");
    if shares > 0 {
        if shares.saturating_mul(1000) > amounts.cpus.thousandths() {
            return Err(above("CpuShares", shares, amounts.cpus.thousandths() / 1000, "cpus"));
        }
        document["CpuShares"] = Value::from(shares.saturating_mul(SHARES_PER_CPU));
    }
    Ok(())
}

async fn target_call(
    found: &Found,
    request: http::Request<Body>,
) -> Result<Response<bytes::Bytes>, ApiError> {
    Ok(found.target.client.call(request).await?)
}

fn exec_id(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    answer["Id"].as_str().map(str::to_owned)
}
