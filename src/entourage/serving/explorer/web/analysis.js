// What context does in a set: influence, reversals, decoys, demand. Pure functions of a way to score sets.

import { argmax, logsum } from "./numbers.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Score} Score */
/** @typedef {import("./types.js").Scored} Scored */

/** Utility of an object against all others: its log-odds where utilities are those of a logit.
 * @param {number[]} scores @param {number} i @returns {number} */
export function standing(scores, i) {
  const others = scores.filter((_, j) => j !== i);
  return others.length ? scores[i] - logsum(others) : 0;
}

/** Remove each object in turn and score the rest.
 * @param {Score} score @param {Row[]} rows @param {Row} situation @returns {Promise<Scored[]>} */
export async function withoutEach(score, rows, situation) {
  if (rows.length < 3) return [];
  return score(rows.map((_, j) => ({ rows: rows.filter((_, i) => i !== j), situation })));
}

/** How the presence of object j changes the utility of object i, less the mean change of all others:
 * matrix[i][j]; the diagonal is NaN. The same as entourage.effects.influence_matrix.
 * @param {number[]} whole @param {Scored[]} without @returns {number[][]} */
export function influenceMatrix(whole, without) {
  const m = whole.length;
  const found = whole.map(() => new Array(m).fill(NaN));
  without.forEach((left, j) => {
    const rest = whole.map((_, i) => i).filter((i) => i !== j);
    const changes = rest.map((i, k) => whole[i] - left.scores[k]);
    const scale = Math.max(...whole.map(Math.abs), 1e-30);
    const rounding = 2e-6 * Math.max(1, scale);
    const kept = changes.map((c) => (Math.abs(c) <= rounding ? 0 : c));
    const mean = kept.reduce((a, b) => a + b, 0) / kept.length;
    rest.forEach((i, k) => (found[i][j] = kept[k] - mean));
  });
  return found;
}

/** Preference reversals: pairs whose order changes when a third object is removed.
 * @param {number[]} whole @param {Scored[]} without
 * @returns {{better: number, worse: number, third: number, by: number}[]} the clearest first */
export function reversals(whole, without) {
  /** @type {{better: number, worse: number, third: number, by: number}[]} */
  const found = [];
  without.forEach((left, j) => {
    const rest = whole.map((_, i) => i).filter((i) => i !== j);
    rest.forEach((a, ka) =>
      rest.forEach((b, kb) => {
        const before = whole[a] - whole[b];
        const after = left.scores[ka] - left.scores[kb];
        if (before > 1e-6 && after < -1e-6) found.push({ better: a, worse: b, third: j, by: Math.min(before, -after) });
      }),
    );
  });
  return found.sort((p, q) => q.by - p.by);
}

/** Whose removal helps an object most against all that stay; null where none helps.
 * @param {number[]} whole @param {Scored[]} without @param {number} i
 * @returns {{enemy: number, gain: number, after: Scored} | null} */
export function worstEnemy(whole, without, i) {
  /** @type {{enemy: number, gain: number, after: Scored} | null} */
  let best = null;
  without.forEach((left, j) => {
    if (j === i) return;
    const place = i < j ? i : i - 1;
    const others = whole.filter((_, k) => k !== j);
    const gain = standing(left.scores, place) - standing(others, place);
    if (gain > 1e-6 && (!best || gain > best.gain)) best = { enemy: j, gain, after: left };
  });
  return best;
}

/** Score the set with one more object at each of many places.
 * @param {Score} score @param {Row[]} rows @param {Row} situation @param {Row[]} candidates @returns {Promise<Scored[]>} */
export async function withEach(score, rows, situation, candidates) {
  const found = [];
  const step = Math.max(1, Math.floor(20000 / (rows.length + 1) ** 2));
  for (let at = 0; at < candidates.length; at += step) {
    const some = candidates.slice(at, at + step);
    found.push(...(await score(some.map((one) => ({ rows: [...rows, one], situation })))));
    await new Promise((resolve) => setTimeout(resolve));
  }
  return found;
}

/** The candidate that, once added, raises an object most against the objects that were there before.
 * @param {number[]} whole @param {Scored[]} added @param {number} i
 * @returns {{candidate: number, gain: number} | null} */
export function bestDecoy(whole, added, i) {
  const before = standing(whole, i);
  const gains = added.map((one) => standing(one.scores.slice(0, whole.length), i) - before);
  if (!gains.length) return null;
  const candidate = argmax(gains);
  return gains[candidate] > 1e-6 ? { candidate, gain: gains[candidate] } : null;
}

/** A grid of new objects over two columns; all other values are those of a model object.
 * @param {Row} like @param {number} x @param {number} y @param {[number, number]} xs @param {[number, number]} ys
 * @param {number} count @returns {Row[]} row by row, y from low to high */
export function grid(like, x, y, xs, ys, count) {
  const found = [];
  for (let b = 0; b < count; b++) {
    for (let a = 0; a < count; a++) {
      const row = [...like];
      row[y] = ys[0] + ((b + 0.5) / count) * (ys[1] - ys[0]);
      row[x] = xs[0] + ((a + 0.5) / count) * (xs[1] - xs[0]);
      found.push(row);
    }
  }
  return found;
}

/** The demand for an object along a column of its own.
 * @param {Score} score @param {Row[]} rows @param {Row} situation @param {number} i @param {number} column
 * @param {number[]} values @returns {Promise<{scores: number[], probabilities: number[] | null}>} */
export async function demand(score, rows, situation, i, column, values) {
  const sets = values.map((value) => ({
    rows: rows.map((row, k) => (k === i ? row.map((v, c) => (c === column ? value : v)) : row)),
    situation,
  }));
  const found = await score(sets);
  return {
    scores: found.map((one) => standing(one.scores, i)),
    probabilities: found[0].probabilities ? found.map((one) => (one.probabilities ?? [])[i]) : null,
  };
}

/** Stretches in which a curve moves against the sign it should have.
 * @param {number[]} values @param {number[]} curve @param {number} sign @returns {[number, number][]} */
export function violations(values, curve, sign) {
  /** @type {[number, number][]} */
  const found = [];
  for (let k = 1; k < values.length; k++) {
    if (sign * (curve[k] - curve[k - 1]) >= -1e-6) continue;
    const last = found[found.length - 1];
    if (last && last[1] === values[k - 1]) last[1] = values[k];
    else found.push([values[k - 1], values[k]]);
  }
  return found;
}

/** Each object scored against copies of itself: what the model says of it without its context.
 * @param {Score} score @param {Row[]} rows @param {Row} situation @returns {Promise<number[]>} */
export async function alone(score, rows, situation) {
  const found = await score(rows.map((row) => ({ rows: rows.map(() => row), situation })));
  return found.map((one) => one.scores[0]);
}
