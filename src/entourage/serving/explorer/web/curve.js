// The demand curve of the selected object: its probability, or standing, along one of its own columns.

import { byId, colour, svg } from "./dom.js";
import { percent, shortly, ticks } from "./numbers.js";

const WIDTH = 640;
const HEIGHT = 220;
const EDGE = { left: 62, right: 18, top: 12, bottom: 42 };

/** Draw a curve, where the object stands on it, and the stretches that break the sign.
 * @param {{values: number[], curve: number[], twin: number[] | null, at: number | null, name: string, object: number,
 *   probability: boolean, broken: [number, number][]}} given */
export function drawCurve({ values, curve, twin, at, name, object, probability, broken }) {
  const all = twin ? [...curve, ...twin] : curve;
  const low = probability ? 0 : Math.min(...all);
  const high = probability ? Math.max(...all, 0.05) : Math.max(...all, low + 1e-9);
  const space = 0.06 * (high - low);
  const [first, last] = [values[0], values[values.length - 1]];
  const left = (/** @type {number} */ v) => EDGE.left + ((v - first) / (last - first || 1)) * (WIDTH - EDGE.left - EDGE.right);
  const bottom = HEIGHT - EDGE.bottom;
  const top = (/** @type {number} */ v) => bottom - ((v - low) / (high + space - low || 1)) * (bottom - EDGE.top);
  const path = (/** @type {number[]} */ ys) => ys.map((v, k) => `${k ? "L" : "M"}${left(values[k]).toFixed(1)} ${top(v).toFixed(1)}`).join("");
  const made = [
    ...broken.map(([from, to]) =>
      svg("rect", { class: "broken", x: left(from), width: Math.max(2, left(to) - left(from)), y: EDGE.top, height: bottom - EDGE.top }),
    ),
    svg("line", { x1: EDGE.left, x2: WIDTH - EDGE.right, y1: bottom, y2: bottom }),
    svg("line", { x1: EDGE.left, x2: EDGE.left, y1: EDGE.top, y2: bottom }),
    svg("text", { class: "name", x: (EDGE.left + WIDTH - EDGE.right) / 2, y: HEIGHT - 6, text: name }),
    ...ticks(first, last).map((v) => svg("text", { class: "tick", x: left(v), y: bottom + 18, text: shortly(v) })),
    ...ticks(low, high, 3).map((v) => svg("text", { class: "tick side", x: EDGE.left - 8, y: top(v) + 4, text: probability ? percent(v) : shortly(v) })),
  ];
  if (twin) made.push(svg("path", { class: "curve twin", d: path(twin) }));
  made.push(svg("path", { class: "curve", d: path(curve), stroke: colour(object) }));
  if (at !== null && at >= first && at <= last) {
    const k = values.reduce((best, v, i) => (Math.abs(v - at) < Math.abs(values[best] - at) ? i : best), 0);
    made.push(svg("circle", { cx: left(values[k]), cy: top(curve[k]), r: 6, fill: colour(object) }));
  }
  byId("curve").replaceChildren(...made);
}
