// The cluster as the pages see it: one reading of /state, put in order.

const READ_TIMEOUT_MS = 30000;

/** The newest reading: { etag, cluster }. */
let known;

/** Reads the state of the cluster; what has not changed is neither sent nor put in order again. */
export async function readCluster() {
  const answer = await ask("/state");
  const etag = answer.headers.get("etag");
  if (etag && etag === known?.etag) {
    await answer.body?.cancel();
    return known.cluster;
  }
  known = { etag, cluster: arrange(await answer.json()) };
  return known.cluster;
}

/** Reads what a page needs beside the state. */
export async function readMore(path) {
  return (await ask(path)).json();
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-cache", signal: AbortSignal.timeout(READ_TIMEOUT_MS) });
  if (!answer.ok) throw new Error(`the master answered ${answer.status}`);
  return answer;
}

function arrange(state) {
  const hosts = Map.groupBy(state.slaves, (agent) => agent.hostname);
  const named = state.slaves.map((agent) => ({ ...agent, name: agentName(agent, hosts.get(agent.hostname)) }));
  const agents = new Map(named.map((agent) => [agent.id, agent]));
  const ended = state.completed_frameworks.map((framework) => ({ ...framework, ended: true }));
  const frameworks = [...state.frameworks, ...ended];
  const tasks = frameworks.flatMap((framework) =>
    [...framework.tasks, ...framework.unreachable_tasks, ...framework.completed_tasks].map((task) => ({
      ...task,
      framework,
      agent: agents.get(task.slave_id),
      since: task.statuses.at(-1)?.timestamp,
      first: task.statuses[0]?.timestamp ?? 0,
    })));
  tasks.sort((a, b) => b.first - a.first);
  return { state, agents: named, frameworks, tasks };
}

/** The task of a framework with an id: the newest, if the id was used again. */
export function findTask(cluster, frameworkId, taskId) {
  return cluster.tasks.find((task) => task.framework_id === frameworkId && task.id === taskId);
}

/** Tasks of one executor; the executor of a command task has the task's id. */
export function tasksOf(cluster, frameworkId, agentId, executorId) {
  return cluster.tasks.filter((task) =>
    task.framework_id === frameworkId && task.slave_id === agentId && executorOf(task) === executorId);
}

/** Id of the executor of a task; executors of command tasks are named after them. */
export function executorOf(task) {
  return task.executor_id || task.id;
}

/** Whether a task has terminated. */
export function isTerminal(state) {
  return !["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING", "TASK_UNREACHABLE"].includes(state);
}

/** Where an agent answers: its pid is name@ip:port. A page that came by TLS may read nothing else. */
export function agentAddress(agent) {
  return `${location.protocol}//${agent.pid.split("@")[1]}`;
}

/** Short name of an agent: its host, with the end of its id if other agents are on that host. */
function agentName(agent, onHost) {
  return onHost.length === 1 ? agent.hostname : `${agent.hostname} ${agent.id.split("-").at(-1)}`;
}

/** Where the pages about one thing are. */
export const links = {
  agent: (id) => `#/agent/${encodeURIComponent(id)}`,
  executor: (frameworkId, agentId, executorId) =>
    `#/executor/${[frameworkId, agentId, executorId].map(encodeURIComponent).join("/")}`,
  framework: (id) => `#/framework/${encodeURIComponent(id)}`,
  role: (name) => `#/role/${encodeURIComponent(name)}`,
  task: (task) => `#/task/${encodeURIComponent(task.framework_id)}/${encodeURIComponent(task.id)}`,
};

/** How a task's state reads at a glance. */
export function mood(state) {
  if (["TASK_RUNNING", "TASK_FINISHED"].includes(state)) return "good";
  if (["TASK_STAGING", "TASK_STARTING", "TASK_KILLING", "TASK_KILLED"].includes(state)) return "busy";
  return "bad";
}

/** A moment, in seconds since the epoch, in the reader's time zone: `2026-11-18 00:44:12`. */
export function time(seconds) {
  if (!seconds) return "";
  const at = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const date = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${date} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")}`;
}

/** An amount of at most three digits after the point, none of them needless. */
function number(amount, digits) {
  return String(Number(amount.toFixed(digits)));
}

/** Megabytes, for people. */
export function megabytes(amount) {
  if (amount >= 1024 * 1024) return `${number(amount / 1024 / 1024, 1)} TB`;
  if (amount >= 1024) return `${number(amount / 1024, 1)} GB`;
  return `${number(amount, amount < 10 ? 1 : 0)} MB`;
}

/** A number of cpus: thousandths are as fine as it gets. */
export function cpus(amount) {
  return number(amount, 3);
}

const REVOCABLE = "_revocable";

/** An amount of a resource in its unit. */
export function amount(name, value) {
  return name === "mem" || name === "disk" ? megabytes(value) : cpus(value);
}

/** An amount with the name of its resource: `2 cpus`, `64 MB mem`, `2 revocable cpus`. */
function named(name, value) {
  const [base, kind] = name.endsWith(REVOCABLE) ? [name.slice(0, -REVOCABLE.length), "revocable "] : [name, ""];
  return `${amount(base, value)} ${kind}${base}`;
}

/** Scalar resources by name, without those that are zero. */
export function resources(amounts = {}) {
  return Object.entries(amounts)
    .filter(([, value]) => typeof value === "number" && value > 0)
    .map(([name, value]) => named(name, value))
    .join(", ");
}

/** An amount of a resource, whether revocable or not. */
export function amountOf(amounts, name) {
  return (amounts[name] ?? 0) + revocable(amounts, name);
}

/** The revocable amount of a resource: lent by the owner of a reservation, or oversubscribed. */
export function revocable(amounts, name) {
  return amounts[name + REVOCABLE] ?? 0;
}

/** Names of resources of which some are revocable. */
export function revocableNames(amounts) {
  return Object.keys(amounts)
    .filter((name) => name.endsWith(REVOCABLE) && amounts[name] !== 0)
    .map((name) => name.slice(0, -REVOCABLE.length));
}

/** `2`, `3 revocable`, or `2 + 3 revocable`. */
export function held(amounts, name, show) {
  const [own, lent] = [amounts[name] ?? 0, revocable(amounts, name)];
  if (!lent) return show(own);
  return own ? `${show(own)} + ${show(lent)} revocable` : `${show(lent)} revocable`;
}

/** A share of the cluster. */
export function percent(share) {
  return `${Math.round(share * 1000) / 10} %`;
}

/** A size in bytes, for people. */
export function bytes(amount) {
  if (amount < 1024) return `${amount} B`;
  return amount < 1024 * 1024 ? `${number(amount / 1024, amount < 10240 ? 1 : 0)} KB` : megabytes(amount / 1024 / 1024);
}
