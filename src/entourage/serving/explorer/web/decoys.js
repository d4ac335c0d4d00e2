// New objects at many places: the best decoy, and who wins where.

import { leastGain, standing } from "./influence.js";
import { argmax } from "./numbers.js";

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Score} Score */
/** @typedef {import("./types.js").Scored} Scored */

/** Places of a grid over two ranges, or over one where both are the same column; all other values are those of an object.
 * @param {Row} like @param {number} x @param {number} y @param {(step: number) => number} across @param {(step: number) => number} up
 * from steps between 0 and 1 to values @param {number} count @returns {Row[]} row by row, y from low to high */
export function grid(like, x, y, across, up, count) {
  const found = [];
  for (let b = 0; b < count; b++) {
    for (let a = 0; a < count; a++) {
      const row = [...like];
      row[y] = up((b + 0.5) / count);
      row[x] = across((a + 0.5) / count);
      found.push(row);
    }
  }
  return found;
}

/** Score the set with one more object at each of many places.
 * @param {Score} score @param {Row[]} rows @param {Row} situation @param {Row[]} candidates @returns {Promise<Scored[]>} */
export function withEach(score, rows, situation, candidates) {
  return score(candidates.map((one) => ({ rows: [...rows, one], situation })));
}

/** The candidate that, once added, raises an object most against the objects that were there before.
 * @param {PageData} data @param {number[]} whole @param {Scored[]} added @param {number} i
 * @returns {{candidate: number, gain: number} | null} */
export function bestDecoy(data, whole, added, i) {
  const before = standing(data, whole, i);
  const gains = added.map((one) => standing(data, one.scores.slice(0, whole.length), i) - before);
  if (!gains.length) return null;
  const candidate = argmax(gains);
  return gains[candidate] > leastGain(data, whole) ? { candidate, gain: gains[candidate] } : null;
}

/** Which of the present objects wins for each candidate: its place, or -1 where it is the same as without one.
 * @param {number[]} whole @param {Scored[]} added @returns {number[]} */
export function newWinners(whole, added) {
  const before = argmax(whole);
  return added.map((one) => {
    const winner = argmax(one.scores.slice(0, whole.length));
    return winner === before ? -1 : winner;
  });
}
