// The pages about one agent, one framework, one role.

import { agentAddress, links, percent, resources, time } from "./cluster.js";
import { element, facts, identifier, table } from "./element.js";
import { agentState, attributes, executorTable, frameworkState, missing, roleLink, taskTable } from "./parts.js";

export function agent(cluster, agentId, unreachable = []) {
  const agent = cluster.agents.find((one) => one.id === agentId);
  const here = cluster.tasks.filter((task) => task.slave_id === agentId);
  if (!agent) return absentAgent(agentId, unreachable.find((one) => one.id.value === agentId), here);
  const executors = cluster.state.frameworks.flatMap((framework) => framework.executors).filter((one) => one.slave_id === agentId);
  const reserved = Object.entries(agent.reserved_resources).map(([role, amounts]) => [role, resources(amounts)]);
  return [
    element("h1", {}, `Agent ${agent.name}`),
    facts([
      ["Id", identifier(agent.id)],
      ["State", agentState(agent)],
      ["Draining", agent.drain_info?.state],
      ["Disk pressure", agent.disk_pressure && `since ${time(agent.disk_pressure.since)}: launches are rejected until space is available`],
      ["Address", agentAddress(agent)],
      ["Attributes", attributes(agent)],
      ["Registered", time(agent.reregistered_time ?? agent.registered_time)],
      ["Has", resources(agent.resources)],
      ["In use", resources(agent.used_resources)],
      ["Offered", resources(agent.offered_resources)],
      ...reserved.map(([role, amounts]) => [`Reserved for ${role}`, amounts]),
    ]),
    executors.length > 0 && element("h2", {}, "Executors"),
    executors.length > 0 && executorTable(executors, cluster, ["Agent"]),
    element("h2", {}, "Tasks"),
    taskTable(here, ["Agent"]),
  ];
}

/** An agent that is not registered: what the registry and its tasks tell. */
function absentAgent(agentId, unreachable, tasks) {
  if (!unreachable && tasks.length === 0) return missing("agent", "It is not registered.");
  return [
    element("h1", {}, `Agent ${agentId}`),
    facts([
      ["Id", identifier(agentId)],
      ["State", element("span", { class: "bad" }, unreachable ? "unreachable" : "not registered")],
      ["Since", unreachable && time(unreachable.timestamp.nanoseconds / 1e9)],
    ]),
    element("h2", {}, "Tasks"),
    taskTable(tasks, ["Agent"]),
  ];
}

export function framework(cluster, frameworkId, answer) {
  const framework = cluster.frameworks.find((one) => one.id === frameworkId);
  if (!framework) return missing("framework", "The master has no record of it.");
  const own = cluster.tasks.filter((task) => task.framework_id === frameworkId);
  return [
    element("h1", {}, `Framework ${framework.name || framework.id}`),
    facts([
      ["Id", identifier(framework.id)],
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
    framework.executors.length > 0 && element("h2", {}, "Executors"),
    framework.executors.length > 0 && executorTable(framework.executors, cluster, ["Framework"]),
    element("h2", {}, "Tasks"),
    taskTable(own, ["Framework"]),
  ];
}

/** How a framework stands in one of its roles, and why agents are offered to it or not. */
function standing(standing) {
  const reasons = [...standing.reasons, ...standing.slack.reasons.map((one) => ({ ...one, text: `to borrow: ${one.text}` }))];
  return [
    element("h2", {}, "Offers in role ", roleLink(standing.role)),
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
    ["Borrows", (one) => resources(one.slack?.borrowed)],
    ["Offered last", (one) => one.last_offered_text],
  ];
  return [
    element("h1", {}, `Role ${answer.role}`),
    facts([
      ["Place", answer.place_text],
      ["Weight", String(answer.weight)],
      ["Share", percent(answer.share)],
      ["Holds", resources(answer.held)],
      ["Borrows", resources(answer.slack?.borrowed)],
      ["Guaranteed", resources(answer.quota?.guarantees)],
      ["Limit", resources(answer.quota?.limits)],
      ["Consumed", resources(answer.consumed)],
      ["Guarantee unmet", resources(answer.required)],
      ["Free beyond guarantees", resources(answer.surplus)],
    ]),
    element("h2", {}, "Frameworks"),
    table(columns, answer.frameworks, "No framework is in this role."),
  ];
}
