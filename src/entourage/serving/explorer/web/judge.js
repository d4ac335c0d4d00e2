// From scores to what is shown of them: probabilities or utilities, lengths of bars, ranks.

import { mean, ranks } from "./numbers.js";

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Scored} Scored */
/** @typedef {import("./types.js").Judged} Judged */

const SHORTEST = 0.04; // a bar of the lowest utility

/** @param {PageData} data @param {number} model whose scores they are @param {Scored} scored @returns {Judged} */
export function judge(data, model, { scores, probabilities }) {
  const valid = scores.every(Number.isFinite) && (probabilities ?? []).every(Number.isFinite);
  const [low, high, middle] = [Math.min(...scores), Math.max(...scores), mean(scores)];
  return {
    scores,
    values: probabilities ?? scores.map((s) => s - middle),
    shares: probabilities ?? scores.map((s) => SHORTEST + (1 - SHORTEST) * ((s - low) / (high - low || 1))),
    ranks: ranks(scores),
    nothing: data.outsides[model] && probabilities ? Math.max(0, 1 - probabilities.reduce((a, b) => a + b, 0)) : null,
    probabilities: probabilities !== null,
    spread: high - low,
    valid,
  };
}
