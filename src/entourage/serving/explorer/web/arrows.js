// Influence as arrows: from the object whose presence helps or hurts to the one that it helps or hurts.

import { svg } from "./dom.js";

/** @typedef {import("./types.js").Arrow} Arrow */
/** @typedef {import("./types.js").Live} Live */

const OF_SELECTED = 6; // arrows to and from it
const OF_OTHERS = 4;
const LEAST = 1e-6;

/** The strongest arrows: those of the selected object, and some others.
 * @param {number[]} offered @param {number[][] | null} matrix @param {number} selected @returns {Arrow[]} */
export function strongest(offered, matrix, selected) {
  if (!matrix) return [];
  const all = offered.flatMap((to, a) => offered.map((from, b) => ({ from, to, by: matrix[a][b] })));
  const kept = all.filter((one) => Number.isFinite(one.by) && Math.abs(one.by) > LEAST).sort((p, q) => Math.abs(q.by) - Math.abs(p.by));
  const own = (/** @type {Arrow} */ one) => one.from === selected || one.to === selected;
  return [...kept.filter(own).slice(0, OF_SELECTED), ...kept.filter((one) => !own(one)).slice(0, OF_OTHERS)];
}

/** Bent arrows, solid where presence helps and dashed where it hurts; both directions of a pair are seen.
 * @param {Arrow[]} arrows @param {(i: number) => [number, number]} place @param {(i: number) => number} radius
 * @returns {SVGElement[]} */
export function drawArrows(arrows, place, radius) {
  const most = Math.max(...arrows.map((one) => Math.abs(one.by)), 1e-9);
  return arrows.flatMap(({ from, to, by }) => {
    const [x1, y1] = place(from);
    const [x2, y2] = place(to);
    const length = Math.hypot(x2 - x1, y2 - y1);
    if (length < 1) return [];
    const bend = 0.16;
    const [cx, cy] = [(x1 + x2) / 2 - (y2 - y1) * bend, (y1 + y2) / 2 + (x2 - x1) * bend];
    const last = Math.hypot(x2 - cx, y2 - cy) || 1;
    const [ux, uy] = [(x2 - cx) / last, (y2 - cy) / last];
    const stop = Math.min(0.9 * last, radius(to) + 4); // before the circle
    const [tx, ty] = [x2 - ux * stop, y2 - uy * stop];
    const kind = by > 0 ? "helps" : "hurts";
    const width = 1 + 3.5 * (Math.abs(by) / most);
    const size = 5 + width;
    const [bx, by2] = [tx - ux * size, ty - uy * size];
    const half = 0.55 * size;
    const point = (/** @type {number} */ x, /** @type {number} */ y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    return [
      svg("path", { class: kind, d: `M${point(x1, y1)}Q${point(cx, cy)} ${point(bx, by2)}`, "stroke-width": width.toFixed(1) }),
      svg("path", { class: `head ${kind}`, d: `M${point(tx, ty)}L${point(bx - uy * half, by2 + ux * half)}L${point(bx + uy * half, by2 - ux * half)}Z` }),
    ];
  });
}
