// The pages that list: each is a function from the cluster to elements.

import { cpus, held, isTerminal, links, megabytes, mood, resources, revocable, time } from "./cluster.js";
import { element, facts, identifier, moment, table, tile } from "./element.js";
import { ROWS_MAX, agentState, attributes, frameworkState, hasRevocable, revocableShares, taskTable } from "./parts.js";

export function overview(cluster) {
  const { state, agents, tasks } = cluster;
  const total = (name, kind, amount = (amounts) => amounts[name]) =>
    agents.reduce((sum, agent) => sum + amount(agent[kind], name), 0);
  const count = (wanted) => tasks.filter((task) => task.state === wanted).length;
  const gauge = (title, name, show) => {
    const [used, offered, all] = ["used_resources", "offered_resources", "resources"].map((kind) => total(name, kind));
    const [lent, lendable] = ["used_resources", "resources"].map((kind) => total(name, kind, revocable));
    return element("div", { class: "tile" },
      element("b", {}, `${show(used)} of ${show(all)}`),
      element("meter", { min: 0, max: all || 1, value: used, title: `${title} in use` }),
      element("span", {}, `${title} in use, ${show(offered)} offered`),
      (lent > 0 || lendable > 0) && element("span", {}, `${show(lent)} of ${show(lendable)} revocable in use`));
  };
  return [
    element("h1", {}, state.cluster ? `Cluster ${state.cluster}` : "Cluster"),
    element("div", { class: "tiles" },
      tile(String(state.activated_slaves), "active agents", "#/agents"),
      tile(String(state.deactivated_slaves + state.unreachable_slaves), "inactive agents", "#/agents"),
      tile(String(state.frameworks.length), "frameworks", "#/frameworks"),
      tile(String(count("TASK_RUNNING")), "running tasks", "#/tasks?state=TASK_RUNNING"),
      tile(String(count("TASK_STAGING") + count("TASK_STARTING")), "starting tasks", "#/tasks?state=live"),
      tile(String(tasks.filter((task) => mood(task.state) === "bad").length), "failed tasks", "#/tasks?state=failed")),
    element("h2", {}, "Resources"),
    element("div", { class: "tiles" },
      gauge("CPUs", "cpus", cpus), gauge("Memory", "mem", megabytes), gauge("Disk", "disk", megabytes)),
    element("h2", {}, "Newest tasks"),
    taskTable(tasks.slice(0, 10)),
    element("h2", {}, "Master"),
    facts([
      ["Address", state.pid.split("@")[1]],
      ["Id", identifier(state.id)],
      ["API version", state.version],
      ["Leading since", time(state.elected_time)],
    ]),
  ];
}

export function agents(cluster, query, unreachable = []) {
  const share = (agent, name, show) => `${show(agent.used_resources[name])} / ${show(agent.resources[name])}`;
  const columns = [
    ["Host", (agent) => element("a", { href: links.agent(agent.id) }, agent.hostname)],
    ["Id", (agent) => element("a", { href: links.agent(agent.id), class: "id" }, agent.id)],
    ["State", agentState],
    ["CPUs used", (agent) => share(agent, "cpus", cpus), true],
    ["Memory used", (agent) => share(agent, "mem", megabytes), true],
    ["Disk used", (agent) => share(agent, "disk", megabytes), true],
    ...(cluster.agents.some(hasRevocable) ? [["Revocable used", revocableShares, true]] : []),
    ["Attributes", attributes],
    ["Registered", (agent) => moment(time(agent.reregistered_time ?? agent.registered_time))],
  ];
  const away = cluster.state.recovered_slaves.map((agent) => `${agent.hostname} (${agent.id})`);
  return [
    element("h1", {}, "Agents"),
    table(columns, cluster.agents, "No agent is registered."),
    unreachable.length > 0 && element("h2", {}, "Unreachable agents"),
    unreachable.length > 0 && unreachableTable(unreachable, cluster),
    away.length > 0 && element("p", { class: "quiet" }, `Recovered from the registry, not re-registered yet: ${away.join(", ")}`),
  ];
}

function unreachableTable(unreachable, cluster) {
  const tasks = (id) => cluster.tasks.filter((task) => task.slave_id === id && task.state === "TASK_UNREACHABLE");
  const columns = [
    ["Id", ({ id }) => element("a", { href: links.agent(id.value), class: "id" }, id.value)],
    ["Unreachable since", ({ timestamp }) => moment(time(timestamp.nanoseconds / 1e9))],
    ["Tasks", ({ id }) => String(tasks(id.value).length), true],
  ];
  return element("div", { class: "compact" }, table(columns, unreachable));
}

export function roles(cluster, query, answer) {
  const columns = [
    ["Role", (role) => element("a", { href: links.role(role.name) }, role.name)],
    ["Weight", (role) => String(role.weight), true],
    ["Frameworks", (role) => String(role.frameworks.length), true],
    ["In use", (role) => resources(role.allocated)],
    ["Borrowed", (role) => resources(role.borrowed)],
    ["Offered", (role) => resources(role.offered)],
    ["Reserved", (role) => resources(role.reserved)],
    ["Guaranteed", (role) => resources(role.quota?.guarantee)],
    ["Limit", (role) => resources(role.quota?.limit)],
  ];
  return [element("h1", {}, "Roles"), table(columns, answer.roles, "No framework, weight, quota or reservation names a role.")];
}

export function frameworks(cluster) {
  const columns = [
    ["Name", (framework) => element("a", { href: links.framework(framework.id) }, framework.name)],
    ["Id", (framework) => element("a", { href: links.framework(framework.id), class: "id" }, framework.id)],
    ["State", frameworkState],
    ["Roles", (framework) => (framework.roles ?? [framework.role]).join(", ")],
    ["Tasks", (framework) => element("a", { href: `#/tasks?q=${encodeURIComponent(framework.id)}` },
      String(framework.tasks.length)), true],
    ["CPUs", (framework) => held(framework.used_resources, "cpus", cpus), true],
    ["Memory", (framework) => held(framework.used_resources, "mem", megabytes), true],
    ["Registered", (framework) => moment(time(framework.reregistered_time ?? framework.registered_time))],
  ];
  return [element("h1", {}, "Frameworks"), table(columns, cluster.frameworks, "No framework has subscribed.")];
}

/** Tasks that people look for, beside those in one state. */
const groups = {
  live: (task) => !isTerminal(task.state),
  failed: (task) => mood(task.state) === "bad",
};

export function tasks(cluster, query) {
  const words = (query.get("q") ?? "").toLowerCase();
  const state = query.get("state") ?? "";
  const fits = (task) =>
    (!state || task.state === state || groups[state]?.(task)) &&
    (!words || [task.id, task.name, task.framework_id, task.framework.name, task.slave_id, task.agent?.hostname ?? ""]
      .some((text) => text.toLowerCase().includes(words)));
  const found = cluster.tasks.filter(fits);
  const states = [...Object.keys(groups), ...new Set(cluster.tasks.map((task) => task.state).sort())];
  const go = (name, value) => {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value);
    else next.delete(name);
    location.replace(`#/tasks?${next}`);
  };
  return [
    element("h1", {}, "Tasks"),
    element("div", { class: "tools" },
      element("input", {
        id: "filter", type: "search", placeholder: "Filter by task, framework or agent", value: query.get("q") ?? "",
        "aria-label": "Filter", input: (event) => go("q", event.target.value),
      }),
      element("select", { "aria-label": "State", change: (event) => go("state", event.target.value) },
        element("option", { value: "" }, "all states"),
        states.map((one) => element("option", { value: one, selected: one === state }, one))),
      element("span", { class: "quiet" }, found.length > ROWS_MAX
        ? `${ROWS_MAX} of ${found.length} tasks shown` : `${found.length} tasks`)),
    taskTable(found),
  ];
}
