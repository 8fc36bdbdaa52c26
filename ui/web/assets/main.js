// Reads the state again and again and shows the page that the address names.

import { REFRESH_MS, findTask, readCluster } from "./cluster.js";
import { element } from "./element.js";
import { agents, frameworks, overview, taskFacts, tasks } from "./pages.js";
import { sandboxView } from "./sandbox.js";

const page = document.getElementById("page");
const freshness = document.getElementById("freshness");

let cluster;
/** The sandbox on show, kept over refreshes: { key, view }. */
let shown;

function show() {
  if (!cluster) return;
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href") === `#/${parts[0] === "task" ? "tasks" : parts[0] ?? ""}`;
    if (own) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (parts[0] === "task") return showTask(parts[1], parts[2]);
  leaveTask();
  const pages = { agents, frameworks, tasks };
  const content = (parts[0] ? pages[parts[0]] ?? notFound : overview)(cluster, new URLSearchParams(query));
  replace(page, content);
}

function showTask(frameworkId, taskId) {
  const task = findTask(cluster, frameworkId, taskId);
  if (!task) {
    leaveTask();
    return replace(page, [element("h1", {}, "No such task"),
      element("p", { class: "quiet" }, "The master does not remember it, or not any more.")]);
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

function notFound() {
  return [element("h1", {}, "No such page")];
}

async function refresh() {
  if (!document.hidden) {
    try {
      cluster = await readCluster();
      freshness.textContent = `as of ${new Date().toLocaleTimeString()}`;
      freshness.classList.remove("stale");
      show();
    } catch (error) {
      freshness.textContent = `The master does not answer (${error.message}); what is shown may be old.`;
      freshness.classList.add("stale");
    }
  }
  setTimeout(refresh, REFRESH_MS);
}

addEventListener("hashchange", show);
refresh();
