// The cluster as the pages see it: one reading of /state, put in order.

/** How often the state is read, in milliseconds. */
export const REFRESH_MS = 2000;
const READ_TIMEOUT_MS = 10000;

/** Reads the state of the cluster. */
export async function readCluster() {
  const answer = await fetch("/state", { cache: "no-store", signal: AbortSignal.timeout(READ_TIMEOUT_MS) });
  if (!answer.ok) throw new Error(`the master answered ${answer.status}`);
  return arrange(await answer.json());
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

/** A size in bytes, for people. */
export function bytes(amount) {
  if (amount < 1024) return `${amount} B`;
  return amount < 1024 * 1024 ? `${(amount / 1024).toFixed(1)} KB` : megabytes(amount / 1024 / 1024);
}
