// What agents themselves report: their executors, and the usage of containers. Agents allow reads from the master's pages.

import { agentAddress } from "./cluster.js";

const READ_TIMEOUT_MS = 10000;
/** CPU time is counted in hundredths of a second; a rate needs readings at least so far apart. */
const SAMPLE_SECS_MIN = 0.5;

/** Reads a document of an agent. */
export async function readAgent(agent, path) {
  const answer = await fetch(agentAddress(agent) + path, { cache: "no-cache", signal: AbortSignal.timeout(READ_TIMEOUT_MS) });
  if (answer.status === 404) throw new Error("it does not exist");
  if (!answer.ok) throw new Error(`the agent answered ${answer.status}`);
  return answer.json();
}

/** The newest executor with this id; undefined if the agent no longer has it. */
export function findExecutor(state, frameworkId, executorId) {
  return [...state.frameworks, ...state.completed_frameworks]
    .filter((framework) => framework.id === frameworkId)
    .flatMap((framework) => [
      ...framework.completed_executors.map((one) => ({ ...one, terminated: true })),
      ...framework.executors,
    ])
    .findLast((one) => one.id === executorId);
}

/** An executor as its agent reports it, with the usage of its containers; or the fault that prevented the read. */
export async function readExecutor(agent, frameworkId, executorId) {
  if (!agent) return { fault: "the agent is not registered" };
  const query = `framework_id=${encodeURIComponent(frameworkId)}&executor_id=${encodeURIComponent(executorId)}`;
  try {
    const [state, containers] = await Promise.all([
      readAgent(agent, "/state"),
      readAgent(agent, `/containers?${query}&show_nested=true`),
    ]);
    const executor = findExecutor(state, frameworkId, executorId);
    if (!executor) return { fault: "the agent no longer has this executor" };
    return { executor, usage: measure(containers) };
  } catch (error) {
    return { fault: explain(error) };
  }
}

/** CPU time at the last reading, by container: { timestamp, seconds, cpus }. */
let samples = new Map();

/** Usage by container: { cpus, memory }; cpus is undefined until there are two readings. */
function measure(containers) {
  const next = new Map();
  const usage = new Map();
  for (const { status, statistics } of containers) {
    if (!statistics) continue;
    const key = containerKey(status.container_id);
    const sample = cpuSample(samples.get(key), statistics);
    next.set(key, sample);
    usage.set(key, { cpus: sample.cpus, memory: statistics.mem_total_bytes ?? statistics.mem_rss_bytes, statistics });
  }
  samples = next;
  return usage;
}

function cpuSample(before, { timestamp, cpus_user_time_secs: user = 0, cpus_system_time_secs: system = 0 }) {
  const seconds = user + system;
  if (!before) return { timestamp, seconds };
  if (timestamp - before.timestamp < SAMPLE_SECS_MIN) return before;
  return { timestamp, seconds, cpus: Math.max(0, (seconds - before.seconds) / (timestamp - before.timestamp)) };
}

/** A container's id with the ids it is nested in, outermost first. */
function containerKey(id) {
  return id.parent ? `${containerKey(id.parent)}/${id.value}` : id.value;
}

/** Key of the container of a task, as its newest status names it. */
export function containerOf(task) {
  const id = task.statuses.findLast((status) => status.container_status?.container_id)?.container_status.container_id;
  return id && containerKey(id);
}

/** Browsers tell scripts little about failed connections; name the likely cause. */
export function explain(error) {
  return error instanceof TypeError ? "this browser cannot reach the agent's address" : error.message;
}
