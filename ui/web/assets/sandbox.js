// The sandbox of one task or executor: its files, and its log as it grows. Read from the agent.

import { explain, findExecutor, readAgent } from "./agent.js";
import { agentAddress, bytes } from "./cluster.js";
import { element } from "./element.js";

/** How often the end of a log is looked at, in milliseconds. */
const FOLLOW_MS = 1000;
/** A log is shown from this many bytes before its end, and no more of it is kept. */
const TAIL_BYTES = 64 * 1024;
const SHOWN_CHARACTERS_MAX = 1024 * 1024;

/** A view that follows a file of { agent, frameworkId, executorId, taskId }; call its `stop` when it is no longer shown. */
export function sandboxView(place) {
  const { agent } = place;
  const files = element("div", { class: "tools" });
  const log = element("pre", { class: "log", tabindex: 0, "aria-label": "Log" });
  const note = element("p", { class: "quiet", role: "status" });
  const view = { element: element("section", {}, element("h2", {}, "Sandbox"), files, note, log), stop: () => {} };
  let stopped = false;
  let following;

  const follow = (directory, name) => {
    following?.stop();
    log.textContent = "";
    for (const button of files.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.textContent === name));
    following = followFile(agent, `${directory}/${name}`, log, note);
  };

  const open = async () => {
    if (!agent) throw new Error("its agent is not registered");
    const directory = findDirectory(await readAgent(agent, "/state"), place);
    if (!directory) throw new Error("its agent no longer has it");
    const entries = await readAgent(agent, `/files/browse?path=${encodeURIComponent(directory)}`);
    if (stopped) return;
    const sizes = {};
    for (const entry of entries.filter((entry) => entry.mode.startsWith("-"))) {
      const name = entry.path.split("/").at(-1);
      sizes[name] = entry.size;
      files.append(
        element("button", { type: "button", "aria-pressed": "false", click: () => follow(directory, name) }, name),
        element("a", { href: `${agentAddress(agent)}/files/download?path=${encodeURIComponent(entry.path)}`, title: `Download ${name}` },
          `${bytes(entry.size)} ⤓`));
    }
    // What failed early often wrote nothing but errors.
    follow(directory, !sizes.stdout && sizes.stderr ? "stderr" : "stdout");
  };

  view.stop = () => {
    stopped = true;
    following?.stop();
  };
  open().catch((error) => {
    note.textContent = `The sandbox cannot be shown: ${explain(error)}.`;
    log.hidden = true;
  });
  return view;
}

/** The executor's directory; a task of a default executor has a folder in it. */
function findDirectory(state, { frameworkId, executorId, taskId }) {
  const executor = findExecutor(state, frameworkId, executorId);
  if (!executor) return undefined;
  return executor.type === "DEFAULT" && taskId ? `${executor.directory}/tasks/${taskId}` : executor.directory;
}

function followFile(agent, path, log, note) {
  const read = (offset) => readAgent(agent, `/files/read?path=${encodeURIComponent(path)}&offset=${offset}`);
  const encoder = new TextEncoder();
  let stopped = false;
  let offset;

  const look = async () => {
    if (offset === undefined) {
      const { offset: size } = await read(-1);
      offset = Math.max(0, size - TAIL_BYTES);
      note.textContent = offset > 0 ? "End of the file; download it for the complete content." : "";
    }
    const { data } = await read(offset);
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
