// What is said of objects and of numbers, in the same words everywhere.

import { leastOf, letter, percent, shortly, signed, utility } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Judged} Judged */
/** @typedef {import("./types.js").Live} Live */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Scale} Scale */
/** @typedef {import("./types.js").Snapshot} Snapshot */

/** @param {Snapshot} now @param {number} i @returns {string} */
export function nameOf(now, i) {
  return now.labels[i] ? `${letter(i)} (${now.labels[i]})` : letter(i);
}

/** What the numbers of a model are. @param {PageData} data @param {boolean} probabilities whether it has them @returns {string} */
export function measure(data, probabilities) {
  return !probabilities ? "utility" : data.task === "ranking" ? "ranked first" : "probability";
}

/** @param {Scale} scale @param {number} value @returns {string} */
export function shown(scale, value) {
  return scale.probabilities ? percent(value) : utility(value, scale.spread);
}

/** A difference: of probabilities, in percentage points. @param {Scale} scale @param {number} value @returns {string} */
export function difference(scale, value) {
  return scale.probabilities ? signed(100 * value, 1) : utility(value, scale.spread);
}

/** Whether numbers can be subtracted: probabilities, or utilities by the same weights. Those of two models have scales of their own.
 * @param {"model" | "control" | ""} what stands beside @param {Judged} own @param {Judged} beside @returns {boolean} */
export function comparable(what, own, beside) {
  return own.probabilities && beside.probabilities ? true : what === "control";
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
  const stands = !now.on[i] ? "not on offer" : !judged || k < 0 || !judged.valid ? "not scored" : `rank ${judged.ranks[k] + 1}, ${measure(data, judged.probabilities)} ${shown(judged, judged.values[k])}`;
  return `${nameOf(now, i)}: ${values.join(", ")}; ${stands}`;
}

/** @param {PageData} data @param {Snapshot} now @param {Live} live @returns {string} */
export function headline(data, now, { offered, own }) {
  if (!own.valid) return "The model gives no scores for this set: a value is missing or too large.";
  const best = offered.filter((_, k) => own.ranks[k] === 0);
  const value = own.values[own.ranks.indexOf(0)];
  const [number, of] = [own.probabilities ? `: ${percent(value)}` : "", offered.length > 1 ? `, of ${offered.length} on offer` : ", the only one on offer"];
  if (best.length > 1) return `${listed(best.map(letter))} are tied for the first place${number && `${number} each`}${of}.`;
  const name = nameOf(now, best[0]);
  if (own.nothing !== null && own.nothing > value) return `Nothing (the outside option) is the most likely choice: ${percent(own.nothing)}. ${name} is next${number}${of}.`;
  const how = data.task === "ranking" ? "is ranked first" : data.task === "subset" ? "is chosen most often" : "is the most likely choice";
  return `${name} ${how}${number}${of}.`;
}

/** @param {string[]} names @returns {string} */
function listed(names) {
  return names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} others` : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

/** The clearest changes of objects, the largest first: those that gain, and those that lose.
 * @param {Scale} scale @param {number[]} objects @param {number[]} changes */
function ordered(scale, objects, changes) {
  const least = scale.probabilities ? 0.0005 : leastOf(scale.spread);
  const all = objects.map((i, k) => ({ i, by: changes[k] })).filter((one) => Math.abs(one.by) >= least);
  all.sort((p, q) => Math.abs(q.by) - Math.abs(p.by));
  return { gains: all.filter((one) => one.by > 0).slice(0, 3), losses: all.filter((one) => one.by < 0).slice(0, 3) };
}

/** Who gains and who loses. @param {Scale} scale @param {number[]} objects @param {number[]} changes @returns {string} */
export function gainsAndLosses(scale, objects, changes) {
  const { gains, losses } = ordered(scale, objects, changes);
  const told = (/** @type {{i: number, by: number}[]} */ some, /** @type {string} */ verb) => some.map((one) => `${letter(one.i)} ${verb} ${difference(scale, Math.abs(one.by)).slice(1)}`).join(", ");
  const parts = [told(gains, "gains"), told(losses, "loses")].filter(Boolean);
  return parts.length ? `${parts.join("; ")}${scale.probabilities ? " (percentage points)" : ""}.` : "nobody gains or loses.";
}

/** Whom one model, or the context, gives more. @param {Scale} scale @param {number[]} objects @param {number[]} changes
 * @returns {string} empty where nothing differs */
export function moreAndLess(scale, objects, changes) {
  const { gains, losses } = ordered(scale, objects, changes);
  const told = (/** @type {{i: number, by: number}[]} */ some) => some.map((one) => `${letter(one.i)} (${difference(scale, one.by)})`).join(", ");
  const parts = [gains.length ? `more to ${told(gains)}` : "", losses.length ? `less to ${told(losses)}` : ""].filter(Boolean);
  return parts.join(" and ");
}
