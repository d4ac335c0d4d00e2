// The set on offer as a table that `entourage predict` takes with the model of the page.

import { ranks } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Live} Live */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Snapshot} Snapshot */

/** Quote a text: so it stays one, also where it looks like a number or like nothing. @param {string} text @returns {string} */
function quoted(text) {
  return '"' + text.replaceAll('"', '""') + '"';
}

/** A text that no model reads: one that a spreadsheet would take for a formula gets an apostrophe.
 * @param {string} text @returns {string} */
function harmless(text) {
  return /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
}

/** A text that is none of the levels. @param {Column} column @returns {string} */
function otherText(column) {
  let text = "another text";
  while (column.levels.includes(text)) text += "_";
  return text;
}

/** @param {Column} column @param {number | null} value @returns {string} */
function cellOf(column, value) {
  if (value === null) return "";
  return column.kind === "level" ? quoted(column.levels[value] ?? otherText(column)) : String(value);
}

/** A name that no column has. @param {string} name @param {string[]} taken @returns {string} */
function unused(name, taken) {
  let found = name;
  while (taken.includes(found)) found += "_";
  taken.push(found);
  return found;
}

/** Only objects on offer are in it, as each row of a set takes part in it. Its own columns come last.
 * @param {PageData} data @param {Snapshot} now @param {Live} live @returns {string} */
export function asCsv(data, now, { offered, own }) {
  const columns = [...data.columns, ...data.situation].map((one) => one.name);
  const taken = data.set_column === null ? [...columns] : [data.set_column, ...columns];
  const setName = data.set_column ?? unused("set", taken);
  const named = data.label_column !== null && !taken.includes(data.label_column);
  if (named) taken.push(String(data.label_column));
  const extra = ["explorer_object", "explorer_score", "explorer_rank", "explorer_probability"].map((name) => unused(name, taken));
  const lines = [[setName, ...columns, ...(named ? [String(data.label_column)] : []), ...extra].map(quoted)];
  const places = ranks(own.scores);
  offered.forEach((i, k) => {
    lines.push([
      quoted(data.sets[now.set].id),
      ...data.columns.map((column, c) => cellOf(column, now.rows[i][c])),
      ...data.situation.map((column, c) => cellOf(column, now.situation[c])),
      ...(named ? [quoted(harmless(now.labels[i]))] : []),
      quoted(harmless(now.labels[i])),
      String(own.scores[k]),
      String(places[k]),
      own.probabilities ? String(own.values[k]) : "",
    ]);
  });
  return lines.map((line) => line.join(",")).join("\n") + "\n";
}
