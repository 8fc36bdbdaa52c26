// The sandbox of one task: its files, and its log as it grows. Read from the task's agent.

import { agentAddress, bytes } from "./cluster.js";
import { element } from "./element.js";

/** How often the end of a log is looked at, in milliseconds. */
const FOLLOW_MS = 1000;
const READ_TIMEOUT_MS = 10000;
/** A log is shown from this many bytes before its end, and no more of it is kept. */
const TAIL_BYTES = 64 * 1024;
const SHOWN_CHARACTERS_MAX = 1024 * 1024;

/** A view that follows a file; call its `stop` when it is no longer shown. */
export function sandboxView(task) {
  const files = element("div", { class: "tools" });
  const log = element("pre", { class: "log", tabindex: 0, "aria-label": "Log" });
  const note = element("p", { class: "quiet", role: "status" });
  const view = { element: element("section", {}, element("h2", {}, "Sandbox"), files, note, log), stop: () => {} };
  let stopped = false;
  let following;

  const follow = (directory, address, name) => {
    following?.stop();
    log.textContent = "";
    for (const button of files.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.textContent === name));
    following = followFile(address, `${directory}/${name}`, log, note);
  };

  const open = async () => {
    if (!task.agent) throw new Error("its agent is not registered now");
    const address = agentAddress(task.agent);
    const directory = findDirectory(await read(`${address}/state`), task);
    if (!directory) throw new Error("its agent no longer has it");
    const entries = await read(`${address}/files/browse?path=${encodeURIComponent(directory)}`);
    if (stopped) return;
    for (const entry of entries.filter((entry) => entry.mode.startsWith("-"))) {
      const name = entry.path.split("/").at(-1);
      files.append(
        element("button", { type: "button", "aria-pressed": "false", click: () => follow(directory, address, name) }, name),
        element("a", { href: `${address}/files/download?path=${encodeURIComponent(entry.path)}`, title: `Download ${name}` },
          `${bytes(entry.size)} ⤓`));
    }
    follow(directory, address, "stdout");
  };

  view.stop = () => {
    stopped = true;
    following?.stop();
  };
  open().catch((error) => {
    note.textContent = `The sandbox cannot be shown: ${explain(error)}.`;
  });
  return view;
}

/** The executor's directory; a task of a default executor has a folder in it. */
function findDirectory(state, task) {
  const executorId = task.executor_id || task.id;
  const executor = [...state.frameworks, ...state.completed_frameworks]
    .filter((framework) => framework.id === task.framework_id)
    .flatMap((framework) => [...framework.executors, ...framework.completed_executors])
    .findLast((one) => one.id === executorId);
  if (!executor) return undefined;
  return executor.type === "DEFAULT" ? `${executor.directory}/tasks/${task.id}` : executor.directory;
}

function followFile(address, path, log, note) {
  const url = (offset) => `${address}/files/read?path=${encodeURIComponent(path)}&offset=${offset}`;
  const encoder = new TextEncoder();
  let stopped = false;
  let offset;

  const look = async () => {
    if (offset === undefined) {
      const { offset: size } = await read(url(-1));
      offset = Math.max(0, size - TAIL_BYTES);
      note.textContent = offset > 0 ? "The end of the file; the download has all of it." : "";
    }
    const { data } = await read(url(offset));
    if (stopped || data === "") return;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
    // The agent gives one byte of text for each byte that is no text, so counting bytes leads to the next piece.
    offset += encoder.encode(data).length;
    log.textContent = (log.textContent + data).slice(-SHOWN_CHARACTERS_MAX);
    if (atEnd) log.scrollTop = log.scrollHeight;
  };

  const run = async () => {
    while (!stopped) {
      try {
        if (!document.hidden) await look();
      } catch (error) {
        if (!stopped) note.textContent = `The log cannot be read: ${explain(error)}.`;
      }
      await new Promise((resume) => setTimeout(resume, FOLLOW_MS));
    }
  };
  run();
  return { stop: () => { stopped = true; } };
}

async function read(url) {
  const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(READ_TIMEOUT_MS) });
  if (answer.status === 404) throw new Error("it is not there");
  if (!answer.ok) throw new Error(`the agent answered ${answer.status}`);
  return answer.json();
}

/** Browsers say little about failed connections; say what it may be. */
function explain(error) {
  return error instanceof TypeError ? "this browser cannot reach the agent's address" : error.message;
}
