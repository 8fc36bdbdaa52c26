// Reads the cluster again and again and shows the page that the address names.

import { readExecutor } from "./agent.js";
import { executorOf, findTask, readCluster, readMore, time } from "./cluster.js";
import { agent, framework, role } from "./details.js";
import { element } from "./element.js";
import { executorPage } from "./executor.js";
import { agents, frameworks, overview, roles, tasks } from "./pages.js";
import { missing } from "./parts.js";
import { sandboxView } from "./sandbox.js";
import { taskPage } from "./task.js";

/** How long to wait between two readings, in milliseconds, and how much longer than a reading took. */
const REFRESH_MS = 2000;
const REST_PER_READING = 4;

/** Pages about the cluster: (cluster, query, answer of what `needs` names). */
const lists = { agents, frameworks, roles, tasks };
/** Pages about one thing: (cluster, its name, answer). */
const details = { agent, framework, role };
/** Pages about what has a sandbox: (cluster, its names, answer) to { content, sandbox }. */
const sandboxed = { executor: executorPage, task: taskPage };
const listOf = { agent: "agents", executor: "tasks", framework: "frameworks", role: "roles", task: "tasks" };

/** What a page reads beside the state: a key for it, and how. */
const needs = {
  agents: readUnreachable,
  agent: readUnreachable,
  roles: () => fromMaster("/roles"),
  role: (name) => fromMaster(`/explain/role/${name.split("/").map(encodeURIComponent).join("/")}`),
  // Completed frameworks are not explained.
  framework: (id) => cluster?.state.frameworks.some((one) => one.id === id) && fromMaster(`/explain/framework/${encodeURIComponent(id)}`),
  task: (frameworkId, taskId) => ({ key: `task ${frameworkId} ${taskId}`, read: () => readTask(frameworkId, taskId) }),
  executor: (frameworkId, agentId, executorId) => ({
    key: `executor ${frameworkId} ${agentId} ${executorId}`,
    read: () => readExecutor(cluster.agents.find((one) => one.id === agentId), frameworkId, executorId),
  }),
};

function fromMaster(path) {
  return { key: path, read: () => readMore(path) };
}

/** Agents that are unreachable: the registry alone has them. Nothing if there are none, or if it may not be read. */
function readUnreachable() {
  const read = async () => {
    try {
      return (await readMore("/registrar(1)/registry")).unreachable.slaves;
    } catch {
      return [];
    }
  };
  return cluster?.state.unreachable_slaves > 0 && { key: "unreachable", read };
}

/** Statuses of a task with their reasons, from the master; usage of its executor, from the agent. */
async function readTask(frameworkId, taskId) {
  const task = findTask(cluster, frameworkId, taskId);
  if (!task) return {};
  const query = `framework_id=${encodeURIComponent(frameworkId)}&task_id=${encodeURIComponent(taskId)}`;
  const [{ tasks: [newest] }, executor] = await Promise.all([
    readMore(`/tasks?${query}&show_reasons=true`),
    readExecutor(task.agent, frameworkId, executorOf(task)),
  ]);
  return { ...executor, statuses: newest?.statuses };
}

const page = document.getElementById("page");
const freshness = document.getElementById("freshness");

let cluster;
/** What the page on show needed beside the state: { key, answer, fault }. */
let more = {};
/** The sandbox on show, kept over refreshes: { key, view }. */
let shown;

/** What the address names. */
function place() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const [name = "", ...rest] = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { name, rest, query: new URLSearchParams(query) };
}

function show() {
  if (!cluster) return;
  const { name, rest, query } = place();
  mark(listOf[name] ?? name);
  const { content, sandbox } = pageFor(name, rest, query);
  showSandbox(sandbox);
  if (content[0].tagName === "H1") document.title = `${content[0].textContent} · Tepui`;
  replace(page, [...content.filter(Boolean), shown?.view.element].filter(Boolean));
}

function mark(name) {
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function pageFor(name, rest, query) {
  if (!name) return { content: overview(cluster) };
  if (!lists[name] && !details[name] && !sandboxed[name]) {
    return { content: missing("page", "Use the links above.") };
  }
  const key = needed(name, rest)?.key;
  const { answer, fault } = more.key === key ? more : {};
  if (sandboxed[name]) return sandboxed[name](cluster, rest, fault ? { fault } : answer);
  if (fault) return { content: missing(name, `It cannot be shown: ${fault}.`) };
  if (key && !answer) return { content: [element("p", { class: "quiet" }, "Loading.")] };
  return { content: lists[name] ? lists[name](cluster, query, answer) : details[name](cluster, rest[0], answer) };
}

function needed(name, rest) {
  return needs[name]?.(...(rest.length > 0 ? rest : [""])) || undefined;
}

/** Keeps the view of a sandbox while its page is shown. */
function showSandbox(sandbox) {
  const key = sandbox && JSON.stringify({ ...sandbox, agent: sandbox.agent?.pid });
  if (shown?.key === key) return;
  shown?.view.stop();
  shown = sandbox && { key, view: sandboxView(sandbox) };
}

/** Replaces the parts of the content that changed: text that is selected and the cursor in the filter stay. */
function replace(place, content) {
  const focused = document.activeElement?.id;
  const [start, end] = focused === "filter" ? [document.activeElement.selectionStart, document.activeElement.selectionEnd] : [];
  content.forEach((next, at) => {
    const before = place.children[at];
    if (!before) place.append(next);
    else if (before !== next && (next === shown?.view.element || !before.isEqualNode(next))) before.replaceWith(next);
  });
  while (place.children.length > content.length) place.lastElementChild.remove();
  if (focused === "filter") {
    const filter = document.getElementById("filter");
    filter?.focus();
    filter?.setSelectionRange(start, end);
  }
}

/** Reads what the page needs beside the state; a fault of that is told on the page. */
async function readNeeded() {
  const { name, rest } = place();
  const need = cluster && needed(name, rest);
  if (!need) return;
  try {
    more = { key: need.key, answer: await need.read() };
  } catch (error) {
    more = { key: need.key, fault: error.message };
  }
}

async function read() {
  try {
    cluster = await readCluster();
    await readNeeded();
    freshness.textContent = `as of ${time(Date.now() / 1000)}`;
    freshness.classList.remove("stale");
    show();
  } catch (error) {
    freshness.textContent = `The master does not answer (${error.message}); the page may be out of date.`;
    freshness.classList.add("stale");
  }
}

/** A large cluster, or a busy master, is read less often. */
async function refresh() {
  const started = performance.now();
  if (!document.hidden) await read();
  setTimeout(refresh, Math.max(REFRESH_MS, REST_PER_READING * (performance.now() - started)));
}

addEventListener("hashchange", async () => {
  show();
  await readNeeded();
  show();
});
refresh();
