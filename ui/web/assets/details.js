// The pages about one thing: an agent, a framework, a role, a task.

import { agentAddress, cpus, links, megabytes, mood, percent, resources, time } from "./cluster.js";
import { element, facts, table } from "./element.js";
import { agentState, attributes, frameworkState, taskTable, upTo } from "./pages.js";

const id = (text) => element("span", { class: "id" }, text);

export function agent(cluster, agentId) {
  const agent = cluster.agents.find((one) => one.id === agentId);
  if (!agent) return missing("agent", "It is not registered now.");
  const here = cluster.tasks.filter((task) => task.slave_id === agentId);
  const reserved = Object.entries(agent.reserved_resources).map(([role, amounts]) => [role, resources(amounts)]);
  return [
    element("h1", {}, `Agent ${agent.hostname}`),
    facts([
      ["Id", id(agent.id)],
      ["State", agentState(agent)],
      ["Draining", agent.drain_info?.state],
      ["Address", agentAddress(agent)],
      ["Attributes", attributes(agent)],
      ["Registered", time(agent.reregistered_time ?? agent.registered_time)],
      ["Has", resources(agent.resources)],
      ["In use", resources(agent.used_resources)],
      ["Offered", resources(agent.offered_resources)],
      ...reserved.map(([role, amounts]) => [`Reserved for ${role}`, amounts]),
    ]),
    element("h2", {}, "Tasks"),
    taskTable(here),
  ];
}

export function framework(cluster, frameworkId, answer) {
  const framework = cluster.frameworks.find((one) => one.id === frameworkId);
  if (!framework) return missing("framework", "The master does not remember it, or not any more.");
  const own = cluster.tasks.filter((task) => task.framework_id === frameworkId);
  return [
    element("h1", {}, framework.name || framework.id),
    facts([
      ["Id", id(framework.id)],
      ["State", frameworkState(framework)],
      ["User", framework.user],
      ["Principal", framework.principal],
      ["Host", framework.hostname],
      ["Registered", time(framework.reregistered_time ?? framework.registered_time)],
      ["Capabilities", (framework.capabilities ?? []).join(", ")],
      ["In use", resources(framework.used_resources)],
      ["Offered", resources(framework.offered_resources)],
    ]),
    ...(answer?.roles ?? []).flatMap(standing),
    element("h2", {}, "Tasks"),
    taskTable(own),
  ];
}

/** How a framework stands in one of its roles, and why agents are offered to it or not. */
function standing(standing) {
  const reasons = [...standing.reasons, ...standing.slack.reasons.map((one) => ({ ...one, text: `to borrow: ${one.text}` }))];
  return [
    element("h2", {}, "Offers in role ", element("a", { href: links.role(standing.role) }, standing.role)),
    facts([
      ["Place", standing.place_text],
      ["Share", percent(standing.share)],
      ["Holds", resources(standing.held)],
      ["Borrows", resources(standing.slack.borrowed)],
      ["Offered last", standing.last_offered_text],
    ]),
    element("ul", {}, reasons.map((reason) => element("li", {}, reason.text))),
  ];
}

export function role(cluster, name, answer) {
  const columns = [
    ["Framework", (one) => element("a", { href: links.framework(one.framework_id), class: "id" }, one.framework_id)],
    ["Place", (one) => one.place_text],
    ["Share", (one) => percent(one.share), true],
    ["Holds", (one) => resources(one.held)],
    ["Offered last", (one) => one.last_offered_text],
  ];
  return [
    element("h1", {}, `Role ${answer.role}`),
    facts([
      ["Place", answer.place_text],
      ["Weight", String(answer.weight)],
      ["Share", percent(answer.share)],
      ["Holds", resources(answer.held)],
      ["Guaranteed", resources(answer.quota?.guarantees)],
      ["Limit", resources(answer.quota?.limits)],
      ["Consumed", resources(answer.consumed)],
      ["Kept for it", resources(answer.required)],
      ["For anybody", resources(answer.surplus)],
    ]),
    element("h2", {}, "Frameworks"),
    table(columns, answer.frameworks, "No framework is in this role."),
  ];
}

/** What is known about one task, above its sandbox. */
export function taskFacts(task) {
  const history = [
    ["State", (status) => element("span", { class: mood(status.state) }, status.state)],
    ["At", (status) => time(status.timestamp)],
    ["Healthy", (status) => (status.healthy === undefined ? "" : status.healthy ? "yes" : "no")],
  ];
  return [
    element("h1", {}, task.name || task.id),
    facts([
      ["State", element("span", { class: mood(task.state) }, task.state)],
      ["Task", element("span", { class: "id" }, task.id)],
      ["Framework", element("a", { href: links.framework(task.framework_id) }, `${task.framework.name} (${task.framework_id})`)],
      ["Agent", element("a", { href: links.agent(task.slave_id) }, task.agent ? `${task.agent.hostname} (${task.slave_id})` : task.slave_id)],
      ["Role", element("a", { href: links.role(task.role) }, task.role)],
      ["User", task.user],
      ["Uses", `${upTo(task, "cpus", cpus)} CPUs, ${upTo(task, "mem", megabytes)} memory`],
    ]),
    element("h2", {}, "History"),
    table(history, task.statuses, "Nothing was heard of it yet."),
  ];
}

export function missing(what, why) {
  return [element("h1", {}, `No such ${what}`), element("p", { class: "quiet" }, why)];
}
