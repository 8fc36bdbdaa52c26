// Pieces that several pages show of the same things.

import { containerOf } from "./agent.js";
import { amount, amountOf, bytes, cpus, executorOf, held, links, megabytes, mood, revocable, revocableNames, time } from "./cluster.js";
import { element, label, moment, quiet, table, tag } from "./element.js";

/** Rows shown at most; a filter finds the others. */
export const ROWS_MAX = 500;

const REVOCABLE_HINT = "Lent or oversubscribed: the task is evicted when the resources are needed by their owner.";

export function missing(what, why) {
  return [element("h1", {}, `No such ${what}`), element("p", { class: "quiet" }, why)];
}

export function agentState(agent) {
  if (agent.drain_info) return element("span", { class: "busy" }, agent.drain_info.state.toLowerCase());
  if (agent.active && agent.disk_pressure) return element("span", { class: "bad" }, "disk pressure");
  if (agent.active) return element("span", { class: "good" }, "active");
  return element("span", { class: "bad" }, agent.deactivated ? "deactivated" : "disconnected");
}

export function frameworkState(framework) {
  if (framework.ended) return quiet("completed");
  if (framework.connected) return element("span", { class: "good" }, "connected");
  return element("span", { class: "busy" }, framework.recovered ? "recovered" : "disconnected");
}

export function taskState(state) {
  return element("span", { class: mood(state) }, state);
}

export function attributes(agent) {
  return Object.entries(agent.attributes).map(([name, value]) => `${name}:${value}`).join(" ");
}

export function agentLink(id, agent) {
  return element("a", { href: links.agent(id) }, agent ? `${agent.hostname} (${id})` : id);
}

export function frameworkLink(id, framework) {
  return element("a", { href: links.framework(id) }, framework ? `${framework.name} (${id})` : id);
}

export function roleLink(role) {
  return role && element("a", { href: links.role(role) }, role);
}

export function executorLink(task) {
  return element("a", { href: links.executor(task.framework_id, task.slave_id, executorOf(task)), class: "id" }, executorOf(task));
}

/** Whether an agent has revocable resources: lendable, lent or oversubscribed ones. */
export function hasRevocable(agent) {
  return revocableNames(agent.resources).length > 0 || revocableNames(agent.used_resources).length > 0;
}

/** Revocable scalars of an agent, used and in all: `2 / 4 cpus`, a line for each. */
export function revocableShares(agent) {
  const names = new Set([agent.resources, agent.used_resources].flatMap(revocableNames));
  return [...names].filter((name) => name !== "ports").map((name) => {
    const [used, total] = [agent.used_resources, agent.resources].map((of) => amount(name, revocable(of, name)));
    return element("div", {}, `${used} / ${total} ${name}`);
  });
}

/** Amount of a resource that a task requests, marked if it is revocable. */
export function request(task, name, show) {
  const text = show(amountOf(task.resources, name));
  return revocable(task.resources, name) > 0 ? [text, " ", tag("revocable", REVOCABLE_HINT)] : text;
}

/** Amount of a resource that a task may use; nothing if no limit is set. */
export function limit(task, name, show) {
  const limit = task.limits?.[name];
  if (limit === undefined) return undefined;
  return limit === "Infinity" ? "unlimited" : show(limit);
}

function upTo(task, name, show) {
  const most = limit(task, name, show);
  return most === undefined ? request(task, name, show) : [request(task, name, show), ` to ${most}`];
}

/** Tasks as lists show them, the first of them; columns that a page makes needless are left out. */
export function taskTable(tasks, without = []) {
  const columns = [
    ["Task", (task) => element("a", { href: links.task(task), class: "id" }, task.id)],
    ["Name", (task) => label(task.name)],
    ["State", (task) => taskState(task.state)],
    ["Framework", (task) => element("a", { href: links.framework(task.framework_id) }, task.framework.name || task.framework_id)],
    ["Agent", (task) => element("a", { href: links.agent(task.slave_id) }, task.agent?.name ?? task.slave_id)],
    ["CPUs", (task) => upTo(task, "cpus", cpus), true],
    ["Memory", (task) => upTo(task, "mem", megabytes), true],
    ["Since", (task) => moment(time(task.since))],
  ];
  return table(columns.filter(([title]) => !without.includes(title)), tasks.slice(0, ROWS_MAX), "No tasks.");
}

/** Requests, limits and current usage of tasks, a row for each. */
export function usageTable(tasks, usage, empty) {
  const columns = [
    ["Task", (task) => element("a", { href: links.task(task), class: "id" }, task.id)],
    ["Name", (task) => label(task.name === task.id ? "" : task.name)],
    ["State", (task) => taskState(task.state)],
    ["CPUs requested", (task) => request(task, "cpus", cpus), true],
    ["CPU limit", (task) => limited(task, "cpus", cpus), true],
    ["CPUs used", (task) => used(task, usage, "cpus", cpus), true],
    ["Memory requested", (task) => request(task, "mem", megabytes), true],
    ["Memory limit", (task) => limited(task, "mem", megabytes), true],
    ["Memory used", (task) => used(task, usage, "memory", bytes), true],
    ["Since", (task) => moment(time(task.since))],
  ];
  return table(columns, tasks, empty);
}

/** Requests, limits and current usage of one task, a row for each resource. */
export function resourceTable(task, usage) {
  const rows = [
    { title: "CPUs", name: "cpus", show: cpus, used: (show) => used(task, usage, "cpus", show) },
    { title: "Memory", name: "mem", show: megabytes, used: () => used(task, usage, "memory", bytes) },
    { title: "Disk", name: "disk", show: megabytes },
    { title: "GPUs", name: "gpus", show: cpus },
  ].filter(({ name, used }) => used || amountOf(task.resources, name) > 0);
  const columns = [
    ["Resource", (row) => row.title],
    ["Requested", (row) => request(task, row.name, row.show), true],
    ["Limit", (row) => limited(task, row.name, row.show), true],
    ["Used now", (row) => row.used?.(row.show), true],
  ];
  return element("div", { class: "compact" }, table(columns, rows));
}

function limited(task, name, show) {
  return limit(task, name, show) ?? quiet("not set");
}

/** Usage of a task's own container; a task without one shares its executor's. */
function used(task, usage, name, show) {
  const own = usage?.get(containerOf(task));
  if (own) return own[name] === undefined ? "…" : show(own[name]);
  return quiet(usage && containerOf(task)?.includes("/") ? "shared" : "–");
}

/** Executors that frameworks brought, without needless columns. */
export function executorTable(executors, cluster, without) {
  const tasks = (executor) => cluster.tasks.filter((task) =>
    task.executor_id === executor.executor_id && task.slave_id === executor.slave_id && task.framework_id === executor.framework_id);
  const agent = (executor) => cluster.agents.find((one) => one.id === executor.slave_id);
  const link = (one) => element("a", { href: links.executor(one.framework_id, one.slave_id, one.executor_id), class: "id" }, one.executor_id);
  const columns = [
    ["Executor", link],
    ["Name", (one) => label(one.name)],
    ["Type", (one) => (one.type ?? "CUSTOM").toLowerCase()],
    ["Framework", (one) => element("a", { href: links.framework(one.framework_id), class: "id" }, one.framework_id)],
    ["Agent", (one) => element("a", { href: links.agent(one.slave_id) }, agent(one)?.name ?? one.slave_id)],
    ["Tasks", (one) => String(tasks(one).length), true],
    ["Own CPUs", (one) => held(one.resources, "cpus", cpus), true],
    ["Own memory", (one) => held(one.resources, "mem", megabytes), true],
  ];
  return table(columns.filter(([title]) => !without.includes(title)), executors, "No executors.");
}
