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
  const agents = new Map(state.slaves.map((agent) => [agent.id, agent]));
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
  return { state, agents: state.slaves, frameworks, tasks };
}

/** The task of a framework with an id: the newest, if the id was used again. */
export function findTask(cluster, frameworkId, taskId) {
  return cluster.tasks.find((task) => task.framework_id === frameworkId && task.id === taskId);
}

/** Where an agent answers: its pid is name@ip:port. */
export function agentAddress(agent) {
  return `http://${agent.pid.split("@")[1]}`;
}

/** Where the pages about one thing are. */
export const links = {
  agent: (id) => `#/agent/${encodeURIComponent(id)}`,
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

/** Seconds since the epoch, for people. */
export function time(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString() : "";
}

/** Megabytes, for people. */
export function megabytes(amount) {
  return amount >= 10240 ? `${(amount / 1024).toFixed(1)} GB` : `${Math.round(amount)} MB`;
}

/** A number of cpus: thousandths are as fine as it gets. */
export function cpus(amount) {
  return String(Math.round(amount * 1000) / 1000);
}

/** Scalar resources by name; those of which there is nothing are left out. */
export function resources(amounts = {}) {
  const show = { cpus, mem: megabytes, disk: megabytes };
  return Object.entries(amounts)
    .filter(([, amount]) => typeof amount === "number" && amount > 0)
    .map(([name, amount]) => `${(show[name] ?? cpus)(amount)} ${name}`)
    .join(", ");
}

/** A share of the cluster. */
export function percent(share) {
  return `${Math.round(share * 1000) / 10} %`;
}

/** A size in bytes, for people. */
export function bytes(amount) {
  if (amount < 1024) return `${amount} B`;
  return amount < 1024 * 1024 ? `${(amount / 1024).toFixed(1)} KB` : megabytes(amount / 1024 / 1024);
}
