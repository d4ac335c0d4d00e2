// The context-ablated control: the same weights, each object scored against copies of itself.

import { logsum } from "./numbers.js";

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Score} Score */
/** @typedef {import("./types.js").Scored} Scored */

/** The probabilities of utilities, by the task of the model.
 * @param {PageData} data @param {number[]} scores @returns {number[] | null} */
function probabilitiesOf(data, scores) {
  const [heat] = data.temperatures;
  if (heat === null) return null;
  if (data.task === "subset") return scores.map((s) => 1 / (1 + Math.exp(-s)));
  const utilities = scores.map((s) => s / heat);
  const total = logsum(data.outsides[0] ? [...utilities, 0] : utilities);
  return utilities.map((u) => Math.exp(u - total));
}

/** What the model says of a set without its context.
 * @param {PageData} data @param {Score} score @param {Row[]} rows @param {Row} situation @returns {Promise<Scored>} */
export async function withoutContext(data, score, rows, situation) {
  const found = await score(rows.map((row) => ({ rows: rows.map(() => row), situation })));
  const scores = found.map((one) => one.scores[0]);
  return { scores, probabilities: probabilitiesOf(data, scores) };
}

/** A way to score sets by the control in which only one object changes: the others are scored once.
 * @param {PageData} data @param {Score} score @param {Row[]} rows @param {Row} situation @param {number} i @param {number[]} scores
 * of all objects @param {Row[]} moved the object, changed @returns {Promise<Scored[]>} */
export async function controlOfMoves(data, score, rows, situation, i, scores, moved) {
  const found = await score(moved.map((row) => ({ rows: rows.map(() => row), situation })));
  return found.map((one) => {
    const changed = scores.map((s, k) => (k === i ? one.scores[0] : s));
    return { scores: changed, probabilities: probabilitiesOf(data, changed) };
  });
}
