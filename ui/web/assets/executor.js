// One executor: requests and limits of its tasks, and their current usage.

import { bytes, cpus, isTerminal, resources, tasksOf } from "./cluster.js";
import { element, facts, identifier, quiet } from "./element.js";
import { agentLink, frameworkLink, missing, roleLink, taskTable, usageTable } from "./parts.js";

const MEGABYTE = 1024 * 1024;

/** The page of an executor: its content, and the sandbox to show below it. */
export function executorPage(cluster, [frameworkId, agentId, executorId], { executor, usage, fault } = {}) {
  const agent = cluster.agents.find((one) => one.id === agentId);
  const framework = cluster.frameworks.find((one) => one.id === frameworkId);
  const tasks = tasksOf(cluster, frameworkId, agentId, executorId);
  const known = framework?.executors.find((one) => one.executor_id === executorId && one.slave_id === agentId);
  if (!known && !executor && tasks.length === 0) {
    return { content: missing("executor", fault ? `It cannot be read: ${fault}.` : "It is unknown to the master and to its agent.") };
  }
  const live = tasks.filter((task) => !isTerminal(task.state));
  const terminated = tasks.filter((task) => isTerminal(task.state));
  const name = executor?.name || known?.name;
  return {
    content: [
      element("h1", {}, "Executor ", name || executorId),
      facts([
        ["State", state(executor, live)],
        ["Id", identifier(executorId)],
        ["Type", type(executor, known)],
        ["Framework", frameworkLink(frameworkId, framework)],
        ["Agent", agentLink(agentId, agent)],
        ["Role", roleLink(executor?.role ?? known?.role)],
        ["Own resources", resources(known?.resources)],
        ["Container", executor && identifier(executor.container)],
      ]),
      fault && element("p", { class: "note" }, `Its usage cannot be shown: ${fault}.`),
      ...usageTiles(agent, live, executor, usage),
      element("h2", {}, "Tasks"),
      usageTable(live, usage, "It has no running tasks."),
      element("p", { class: "quiet" },
        "Requests are guaranteed; beyond its request, up to its limit, a task uses idle resources. Without a memory limit ",
        "the request is the limit, on agents that isolate memory."),
      terminated.length > 0 && element("h2", {}, "Terminated tasks"),
      terminated.length > 0 && taskTable(terminated, ["Framework", "Agent"]),
    ],
    sandbox: agent && executor && { agent, frameworkId, executorId },
  };
}

function state(executor, live) {
  if (executor?.terminated) return quiet("terminated");
  if (executor) return element("span", { class: "good" }, "active");
  return live.length > 0 ? element("span", { class: "busy" }, "unknown") : quiet("terminated");
}

function type(executor, known) {
  const type = executor?.type ?? known?.type;
  if (type === "DEFAULT") return "default (task groups)";
  if (type === "CUSTOM") return "custom";
  return known ? "custom" : "command";
}

/** Usage of the whole executor against what it and its tasks request and may use. */
function usageTiles(agent, live, executor, usage) {
  const whole = executor && usage?.get(executor.container);
  if (!whole) return [];
  const { cpus_soft_limit, cpus_limit, mem_soft_limit_bytes, mem_limit_bytes } = whole.statistics;
  const infinite = (name) => live.some((task) => task.limits?.[name] === "Infinity");
  return [
    element("h2", {}, "Usage of all its tasks now"),
    element("div", { class: "tiles" },
      usageTile("in use", whole.cpus, cpus_soft_limit, infinite("cpus") ? Infinity : cpus_limit, cpus, agent?.resources.cpus, " CPUs"),
      usageTile("memory in use", whole.memory, mem_soft_limit_bytes, infinite("mem") ? Infinity : mem_limit_bytes, bytes,
        (agent?.resources.mem ?? 0) * MEGABYTE)),
  ];
}

function usageTile(title, used, request = 0, limit = request, show, machine, unit = "") {
  const end = Math.max(limit === Infinity ? machine : limit, request, used ?? 0) || 1;
  return element("div", { class: "tile" },
    element("b", {}, used === undefined ? "…" : `${show(used)}${unit}`),
    element("meter", { min: 0, max: end, value: used ?? 0, title }),
    element("span", {}, `${title}; ${show(request)} requested, ${limit === Infinity ? "no limit" : `limit ${show(limit)}`}`));
}
