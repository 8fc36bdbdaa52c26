// One task: its requests, limits and current usage, and its statuses with their reasons.

import { containerOf } from "./agent.js";
import { executorOf, findTask, isTerminal, revocableNames, time } from "./cluster.js";
import { element, facts, identifier, moment, table } from "./element.js";
import { agentLink, executorLink, frameworkLink, missing, resourceTable, roleLink, taskState } from "./parts.js";

/** The page of a task: its content, and the sandbox to show below it. */
export function taskPage(cluster, [frameworkId, taskId], { statuses, usage, fault } = {}) {
  const task = findTask(cluster, frameworkId, taskId);
  if (!task) return { content: missing("task", "The master has no record of it.") };
  // A task that is staging has no sandbox yet.
  const launched = task.statuses.some((status) => status.state !== "TASK_STAGING");
  return {
    content: [
      element("h1", {}, `Task ${task.name || task.id}`),
      taskFacts(task, (statuses ?? task.statuses).at(-1)),
      element("h2", {}, "Resources"),
      resourceTable(task, usage),
      fault && task.agent && !isTerminal(task.state) && element("p", { class: "note" }, `Its usage cannot be shown: ${fault}.`),
      element("h2", {}, "History"),
      historyTable(statuses ?? task.statuses),
      !launched && element("p", { class: "quiet" }, "It has no sandbox yet."),
    ],
    sandbox: launched && { agent: task.agent, frameworkId, executorId: executorOf(task), taskId },
  };
}

function taskFacts(task, last) {
  const names = revocableNames(task.resources);
  const container = containerOf(task);
  return facts([
    ["State", taskState(task.state)],
    ["Reason", last && without(last.reason, "REASON_")],
    ["Message", last?.message && element("span", { class: "message" }, last.message)],
    ["Since", moment(time(last?.timestamp))],
    ["Task", identifier(task.id)],
    ["Framework", frameworkLink(task.framework_id, task.framework)],
    ["Agent", agentLink(task.slave_id, task.agent)],
    ["Executor", executorLink(task)],
    ["Role", roleLink(task.role)],
    ["User", task.user],
    ["Container", container && identifier(container)],
    ["Revocable", names.length > 0 && `${names.join(", ")}: the task is evicted when the owner of these resources needs them`],
  ]);
}

function historyTable(statuses) {
  const columns = [
    ["State", (status) => taskState(status.state)],
    ["At", (status) => moment(time(status.timestamp))],
    ["Healthy", (status) => (status.healthy === undefined ? "" : status.healthy ? "yes" : "no")],
    ["Source", (status) => without(status.source, "SOURCE_")],
    ["Reason", (status) => without(status.reason, "REASON_")],
    ["Message", (status) => status.message && element("span", { class: "message" }, status.message)],
  ];
  return table(columns, statuses, "No status update has arrived yet.");
}

/** A value of the protocol without its prefix. */
function without(value, prefix) {
  return value?.startsWith(prefix) ? value.slice(prefix.length) : value ?? "";
}
