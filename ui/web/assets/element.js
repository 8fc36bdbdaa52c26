// Elements from code. Text is always text: nothing that a cluster's users wrote is ever read as markup.

/** An element with attributes; functions become listeners, false and undefined are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

/** A table: columns are [title, cell of a row, is it a number]. */
export function table(columns, rows, empty) {
  if (rows.length === 0) return element("p", { class: "quiet" }, empty);
  const head = columns.map(([title, , number]) => element("th", { class: number && "number" }, title));
  const line = (row) =>
    element("tr", {}, columns.map(([, cell, number]) => element("td", { class: number && "number" }, cell(row))));
  return element("div", { class: "scroll" },
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows.map(line))));
}

/** One number with its name. */
export function tile(value, name, href) {
  const inside = [element("b", {}, value), element("span", {}, name)];
  return href ? element("a", { class: "tile", href }, inside) : element("div", { class: "tile" }, inside);
}

/** Facts as a list; pairs without a value are left out. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== "");
  return element("dl", {}, shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}
