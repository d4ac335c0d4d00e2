// What is said of objects and of numbers, in the same words everywhere.

import { letter, percent, shortly, signed } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Judged} Judged */
/** @typedef {import("./types.js").Live} Live */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Snapshot} Snapshot */

/** @param {Snapshot} now @param {number} i @returns {string} */
export function nameOf(now, i) {
  return now.labels[i] ? `${letter(i)} (${now.labels[i]})` : letter(i);
}

/** What the numbers of a model are. @param {PageData} data @returns {string} */
export function measure(data) {
  return data.temperature === null ? "utility" : data.task === "ranking" ? "ranked first" : "probability";
}

/** @param {PageData} data @param {number} value @returns {string} */
export function shown(data, value) {
  return data.temperature === null ? signed(value) : percent(value);
}

/** A difference: of probabilities, in percentage points. @param {PageData} data @param {number} value @returns {string} */
export function difference(data, value) {
  return data.temperature === null ? signed(value) : signed(100 * value, 1);
}

/** @param {Column} column @param {number | null} value @returns {string} */
export function cell(column, value) {
  if (value === null) return "missing";
  if (column.kind === "level") return column.levels[value] ?? "another text";
  if (column.kind === "flag") return value ? "yes" : "no";
  return shortly(value);
}

/** @param {PageData} data @param {Snapshot} now @param {number} i @param {Live | null} live @param {"own" | "beside"} which
 * @returns {string} */
export function describe(data, now, i, live, which) {
  const places = now.x === now.y ? [now.x] : [now.x, now.y];
  const values = places.map((place) => `${data.columns[place].name} ${cell(data.columns[place], now.rows[i][place])}`);
  const k = live ? live.offered.indexOf(i) : -1;
  const judged = live?.[which];
  const stands = !now.on[i] ? "not on offer" : !judged || k < 0 || !judged.valid ? "not scored" : `rank ${judged.ranks[k] + 1}, ${measure(data)} ${shown(data, judged.values[k])}`;
  return `${nameOf(now, i)}: ${values.join(", ")}; ${stands}`;
}

/** @param {PageData} data @param {Snapshot} now @param {Live} live @returns {string} */
export function headline(data, now, { offered, own }) {
  if (!own.valid) return "The model gives no scores for this set: a value is missing or too large.";
  const best = offered[own.ranks.indexOf(0)];
  const k = offered.indexOf(best);
  const how = data.task === "ranking" ? "is ranked first" : data.task === "subset" ? "is chosen most often" : "is the most likely choice";
  const number = own.probabilities ? `: ${percent(own.values[k])}` : "";
  return `${nameOf(now, best)} ${how}${number}${offered.length > 1 ? `, of ${offered.length} on offer` : ", the only one on offer"}.`;
}

/** The clearest changes of objects, the largest first: those that gain, and those that lose.
 * @param {PageData} data @param {number[]} objects @param {number[]} changes */
function ordered(data, objects, changes) {
  const least = data.temperature === null ? 0.005 : 0.0005;
  const all = objects.map((i, k) => ({ i, by: changes[k] })).filter((one) => Math.abs(one.by) >= least);
  all.sort((p, q) => Math.abs(q.by) - Math.abs(p.by));
  return { gains: all.filter((one) => one.by > 0).slice(0, 3), losses: all.filter((one) => one.by < 0).slice(0, 3) };
}

/** Who gains and who loses. @param {PageData} data @param {number[]} objects @param {number[]} changes @returns {string} */
export function gainsAndLosses(data, objects, changes) {
  const { gains, losses } = ordered(data, objects, changes);
  const told = (/** @type {{i: number, by: number}[]} */ some, /** @type {string} */ verb) => some.map((one) => `${letter(one.i)} ${verb} ${difference(data, Math.abs(one.by)).slice(1)}`).join(", ");
  const parts = [told(gains, "gains"), told(losses, "loses")].filter(Boolean);
  return parts.length ? `${parts.join("; ")}${data.temperature === null ? "" : " (percentage points)"}.` : "nobody gains or loses.";
}

/** Whom one model, or the context, gives more. @param {PageData} data @param {number[]} objects @param {number[]} changes
 * @returns {string} empty where nothing differs */
export function moreAndLess(data, objects, changes) {
  const { gains, losses } = ordered(data, objects, changes);
  const told = (/** @type {{i: number, by: number}[]} */ some) => some.map((one) => `${letter(one.i)} (${difference(data, one.by)})`).join(", ");
  const parts = [gains.length ? `more to ${told(gains)}` : "", losses.length ? `less to ${told(losses)}` : ""].filter(Boolean);
  return parts.join(" and ");
}
