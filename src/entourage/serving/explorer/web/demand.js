// Demand for an object along one of its own columns, and the economic audit of it.

import { standing } from "./influence.js";
import { clamp } from "./numbers.js";

/** @typedef {import("./types.js").AuditRange} AuditRange */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Score} Score */
/** @typedef {import("./types.js").Scored} Scored */

const NEARBY = 0.01; // of a standard deviation, to either side: the gradient
const LEAST = 1e-12; // of a probability, before its log-odds

/** Values with equal steps. @param {number} low @param {number} high @param {number} count @returns {number[]} */
export function evenly(low, high, count) {
  return Array.from({ length: count }, (_, k) => low + (k / (count - 1)) * (high - low));
}

/** The object with other values of a column. @param {Row} row @param {number} column @param {number[]} values @returns {Row[]} */
export function movesOf(row, column, values) {
  return values.map((value) => row.map((v, c) => (c === column ? value : v)));
}

/** Score the set with one object changed. @param {Score} score @param {Row[]} rows @param {Row} situation @param {number} i
 * @param {Row[]} moved @returns {Promise<Scored[]>} */
export function withMoves(score, rows, situation, i, moved) {
  return score(moved.map((one) => ({ rows: rows.map((row, k) => (k === i ? one : row)), situation })));
}

/** The demand for an object in each of many sets: its probability or, without probabilities, its utility against the rest.
 * @param {PageData} data @param {Scored[]} found @param {number} i @returns {number[]} */
export function demandOf(data, found, i) {
  return found.map((one) => (one.probabilities ? one.probabilities[i] : standing(data, one.scores, i)));
}

/** @param {Scored} one @param {number} i @returns {number} */
function logOdds(one, i) {
  const p = clamp((one.probabilities ?? [])[i], LEAST, 1 - LEAST);
  return Math.log(p) - Math.log1p(-p);
}

/** What an audit says of one object: changes of log-odds in the wrong direction, 0 where there is none.
 * @typedef {{gradient: number, move: number, monotone: number, broken: [number, number][], flagged: boolean}} Verdict */

/** The rule of entourage.decisions.audit for one object: the gradient, a finite move, and the whole range in steps; a change
 * of log-odds above the tolerance in the wrong direction breaks it.
 * @param {PageData} data @param {Score} score @param {Row[]} rows @param {Row} situation @param {number} i @param {number} column
 * @param {AuditRange} range @returns {Promise<Verdict>} */
export async function auditOf(data, score, rows, situation, i, column, range) {
  const at = Number(rows[i][column]);
  const near = NEARBY * range.spread;
  const values = range.indicator ? [0, 1] : evenly(range.low, range.high, data.steps);
  const asked = range.indicator ? values : [...values, at - near, at, at + near, at + range.step];
  const found = (await withMoves(score, rows, situation, i, movesOf(rows[i], column, asked))).map((one) => logOdds(one, i));
  const wrong = (/** @type {number} */ change) => Math.max(0, -data.sign * change);
  /** @type {[number, number][]} */
  const broken = [];
  let monotone = 0;
  for (let k = 1; k < values.length; k++) {
    const amount = wrong(found[k] - found[k - 1]);
    monotone = Math.max(monotone, amount);
    if (amount > data.tolerance) extend(broken, values[k - 1], values[k]);
  }
  const [below, here, above, after] = found.slice(values.length);
  const gradient = range.indicator ? monotone : wrong(((above - below) / (2 * near)) * range.spread);
  const move = range.indicator ? monotone : wrong(after - here);
  return { gradient, move, monotone, broken, flagged: Math.max(gradient, move, monotone) > data.tolerance };
}

/** @param {[number, number][]} stretches @param {number} from @param {number} to */
function extend(stretches, from, to) {
  const last = stretches[stretches.length - 1];
  if (last && last[1] === from) last[1] = to;
  else stretches.push([from, to]);
}
