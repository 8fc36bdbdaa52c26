// Reads the cluster again and again and shows the page that the address names.

import { findTask, readCluster, readMore } from "./cluster.js";
import { agent, framework, missing, role, taskFacts } from "./details.js";
import { element } from "./element.js";
import { agents, frameworks, overview, roles, tasks } from "./pages.js";
import { sandboxView } from "./sandbox.js";

/** How long to wait between two readings, in milliseconds, and how much longer than a reading took. */
const REFRESH_MS = 2000;
const REST_PER_READING = 4;

/** Pages about the cluster: (cluster, query, answer of what `needs` names). */
const lists = { agents, frameworks, roles, tasks };
/** Pages about one thing: (cluster, its name, answer); and the list that it is in. */
const details = { agent, framework, role };
const listOf = { agent: "agents", framework: "frameworks", role: "roles", task: "tasks" };

/** What a page needs beside the state. */
const needs = {
  roles: () => "/roles",
  role: (name) => `/explain/role/${name.split("/").map(encodeURIComponent).join("/")}`,
  framework: (id) => `/explain/framework/${encodeURIComponent(id)}`,
};

const page = document.getElementById("page");
const freshness = document.getElementById("freshness");

let cluster;
/** What the page on show needed beside the state: { path, answer, fault }. */
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
  if (name === "task") return showTask(rest[0], rest[1]);
  leaveTask();
  replace(page, content(name, rest, query));
}

function mark(name) {
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function content(name, rest, query) {
  if (!name) return overview(cluster);
  if (!lists[name] && !details[name]) return missing("page", "The links above lead to those there are.");
  const path = needed(name, rest);
  const { answer, fault } = more.path === path ? more : {};
  if (fault) return missing(name, `It cannot be shown: ${fault}.`);
  if (path && !answer) return [element("p", { class: "quiet" }, "Loading.")];
  return lists[name] ? lists[name](cluster, query, answer) : details[name](cluster, rest[0], answer);
}

/** The path of what is needed; nobody explains a framework that has ended. */
function needed(name, rest) {
  if (name === "framework" && !cluster?.state.frameworks.some((one) => one.id === rest[0])) return undefined;
  return needs[name]?.(rest[0] ?? "");
}

function showTask(frameworkId, taskId) {
  const task = findTask(cluster, frameworkId, taskId);
  if (!task) {
    leaveTask();
    return replace(page, missing("task", "The master does not remember it, or not any more."));
  }
  const key = `${frameworkId}/${taskId}`;
  if (shown?.key !== key || !task.statuses.length !== shown.waiting) {
    leaveTask();
    const about = element("div", {});
    // A task that nobody has heard of has no sandbox yet.
    const waiting = !task.statuses.length;
    const view = waiting ? { element: element("p", { class: "quiet" }, "It has no sandbox yet."), stop: () => {} } : sandboxView(task);
    shown = { key, view, about, waiting };
    page.replaceChildren(about, view.element);
  }
  shown.about.replaceChildren(...taskFacts(task));
}

function leaveTask() {
  shown?.view.stop();
  shown = undefined;
}

/** Replaces the content without taking the cursor out of the filter. */
function replace(place, content) {
  const focused = document.activeElement?.id;
  const [start, end] = focused === "filter" ? [document.activeElement.selectionStart, document.activeElement.selectionEnd] : [];
  place.replaceChildren(...content.filter(Boolean));
  if (focused === "filter") {
    const filter = document.getElementById("filter");
    filter?.focus();
    filter?.setSelectionRange(start, end);
  }
}

/** Reads what the page needs beside the state; a fault of that is told on the page. */
async function readNeeded() {
  const { name, rest } = place();
  const path = needed(name, rest);
  if (!path) return;
  try {
    more = { path, answer: await readMore(path) };
  } catch (error) {
    more = { path, fault: error.message };
  }
}

async function read() {
  try {
    cluster = await readCluster();
    await readNeeded();
    freshness.textContent = `as of ${new Date().toLocaleTimeString()}`;
    freshness.classList.remove("stale");
    show();
  } catch (error) {
    freshness.textContent = `The master does not answer (${error.message}); what is shown may be old.`;
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
