// The map of winners: where a new object would change which of the present ones is best.

import { EDGE } from "./axes.js";
import { colour, svg } from "./dom.js";
import { letter, mean } from "./numbers.js";

const LEAST = 0.02; // of the cells: a region with a letter

/** @param {number[]} winners the object that wins at each cell, or -1 for the same as now, row by row from below
 * @param {number} count cells each way @param {number} width @param {number} height @returns {SVGElement[]} */
export function drawMap(winners, count, width, height) {
  const [w, h] = [(width - EDGE.left - EDGE.right) / count, (height - EDGE.top - EDGE.bottom) / count];
  const x = (/** @type {number} */ k) => EDGE.left + (k % count) * w;
  const y = (/** @type {number} */ k) => height - EDGE.bottom - (Math.floor(k / count) + 1) * h;
  const cells = winners.map((winner, k) =>
    svg("rect", {
      x: x(k).toFixed(2),
      y: y(k).toFixed(2),
      width: w.toFixed(2),
      height: h.toFixed(2),
      "shape-rendering": "crispEdges",
      fill: winner < 0 ? "#888" : colour(winner),
      "fill-opacity": winner < 0 ? 0.07 : 0.28,
    }),
  );
  const letters = [...new Set(winners)].flatMap((winner) => {
    const places = winners.flatMap((one, k) => (one === winner ? [k] : []));
    if (winner < 0 || places.length < LEAST * winners.length) return [];
    const [mx, my] = [mean(places.map(x)) + w / 2, mean(places.map(y)) + h / 2];
    const middle = places.reduce((a, b) => (Math.hypot(x(b) - mx, y(b) - my) < Math.hypot(x(a) - mx, y(a) - my) ? b : a));
    return [svg("text", { class: "region", x: x(middle) + w / 2, y: y(middle) + h / 2 + 5, text: letter(winner) })];
  });
  return [...cells, ...letters];
}
