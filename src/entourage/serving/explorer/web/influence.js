// Who helps and who hurts whom: each object is removed in turn. Pure functions of a way to score sets.

import { logsum, mean } from "./numbers.js";

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Score} Score */
/** @typedef {import("./types.js").Scored} Scored */

const ROUNDING = 2e-6; // relative to the largest utility: a smaller change of a utility is rounding

/** How well an object stands: its log-odds, of a choice and of the first place against all others; without probabilities, its
 * utility less the mean of the others.
 * @param {PageData} data @param {number[]} scores @param {number} i @returns {number} */
export function standing(data, scores, i) {
  if (data.task === "subset") return scores[i];
  const others = scores.filter((_, j) => j !== i);
  const heat = data.temperatures[0];
  if (!others.length) return 0;
  return heat === null ? scores[i] - mean(others) : scores[i] / heat - logsum(others.map((s) => s / heat));
}

/** A change of what `standing` says that is more than rounding. @param {PageData} data @param {number[]} scores @returns {number} */
export function leastGain(data, scores) {
  return roundingOf(scores) / Math.min(1, data.temperatures[0] ?? 1);
}

/** @param {number[]} scores @returns {number} */
function roundingOf(scores) {
  return ROUNDING * Math.max(1, ...scores.map(Math.abs));
}

/** Remove each object in turn and score the rest.
 * @param {Score} score @param {Row[]} rows @param {Row} situation @returns {Promise<Scored[]>} */
export async function withoutEach(score, rows, situation) {
  if (rows.length < 3) return [];
  return score(rows.map((_, j) => ({ rows: rows.filter((_, i) => i !== j), situation })));
}

/** How the presence of object j changes the utility of object i, less the mean change of all others:
 * matrix[i][j]; the diagonal is NaN. The same as entourage.effects.influence_matrix.
 * @param {number[]} whole @param {Scored[]} without @returns {number[][] | null} */
export function influenceMatrix(whole, without) {
  if (!without.length) return null;
  const m = whole.length;
  const found = whole.map(() => new Array(m).fill(NaN));
  const rounding = roundingOf(whole);
  without.forEach((left, j) => {
    const rest = whole.map((_, i) => i).filter((i) => i !== j);
    const changes = rest.map((i, k) => whole[i] - left.scores[k]);
    const kept = changes.map((c) => (Math.abs(c) <= rounding ? 0 : c));
    const middle = mean(kept);
    rest.forEach((i, k) => (found[i][j] = kept[k] - middle));
  });
  return found;
}

/** Preference reversals: pairs whose order changes when a third object is removed.
 * @param {number[]} whole @param {Scored[]} without
 * @returns {{better: number, worse: number, third: number, by: number}[]} the clearest first */
export function reversals(whole, without) {
  /** @type {{better: number, worse: number, third: number, by: number}[]} */
  const found = [];
  const least = roundingOf(whole);
  without.forEach((left, j) => {
    const rest = whole.map((_, i) => i).filter((i) => i !== j);
    rest.forEach((a, ka) =>
      rest.forEach((b, kb) => {
        const before = whole[a] - whole[b];
        const after = left.scores[ka] - left.scores[kb];
        if (before > least && after < -least) found.push({ better: a, worse: b, third: j, by: Math.min(before, -after) });
      }),
    );
  });
  return found.sort((p, q) => q.by - p.by);
}

/** Whose removal helps an object most against all that stay; null where none helps.
 * @param {PageData} data @param {number[]} whole @param {Scored[]} without @param {number} i @returns {{enemy: number, gain: number} | null} */
export function worstEnemy(data, whole, without, i) {
  /** @type {{enemy: number, gain: number} | null} */
  let best = null;
  without.forEach((left, j) => {
    if (j === i) return;
    const others = whole.filter((_, k) => k !== j);
    const place = i < j ? i : i - 1;
    const gain = standing(data, left.scores, place) - standing(data, others, place);
    if (gain > leastGain(data, whole) && (!best || gain > best.gain)) best = { enemy: j, gain };
  });
  return best;
}
