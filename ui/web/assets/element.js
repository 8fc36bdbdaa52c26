// Elements from code. Text is always text: nothing that a cluster's users wrote is ever read as markup, and characters
// that are not seen are written out.

/** An element with attributes; functions become listeners, false and undefined are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  const shown = children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);
  made.append(...shown.map((child) => (typeof child === "string" ? printable(child) : child)));
  return made;
}

/** Control characters, and marks that change the direction of the text after them. */
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function printable(text) {
  return text.replace(UNSEEN, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

/** A table: columns are [title, cell of a row, is it a number]; columns without content in any row are left out. */
export function table(columns, rows, empty) {
  if (rows.length === 0) return element("p", { class: "quiet" }, empty);
  const cells = columns.map(([title, cell, number]) => ({ title, number, content: rows.map((row) => cell(row) ?? "") }));
  const shown = cells.filter(({ content }) => content.some((cell) => cell !== "" && cell.length !== 0));
  const line = (_, at) =>
    element("tr", {}, shown.map(({ number, content }) => element("td", { class: number && "number" }, content[at])));
  const head = shown.map(({ title, number }) => element("th", { class: number && "number", scope: "col" }, title));
  return element("div", { class: "scroll" },
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows.map(line))));
}

/** A moment: it stands on one line. */
export function moment(text) {
  return text && element("time", {}, text);
}

/** One number with its name. */
export function tile(value, name, href) {
  const inside = [element("b", {}, value), element("span", {}, name)];
  return href ? element("a", { class: "tile", href }, inside) : element("div", { class: "tile" }, inside);
}

/** Facts as a list; pairs without a value are left out. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== "" && value !== false);
  return element("dl", {}, shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

/** A name that a user chose: it may be long. */
export function label(text) {
  return text && element("span", { class: "label" }, text);
}

/** An id: monospaced, broken anywhere. */
export function identifier(text) {
  return element("span", { class: "id" }, text);
}

export function quiet(text) {
  return element("span", { class: "quiet" }, text);
}

/** A short mark beside a value. */
export function tag(text, title) {
  return element("span", { class: "tag", title }, text);
}
