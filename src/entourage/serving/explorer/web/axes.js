// The two axes of a picture: ranges, ticks, and the way from values to places. Both pictures share them.

import { svg } from "./dom.js";
import { clamp, shortly, tickTexts, ticks } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Snapshot} Snapshot */

const MOST_LEVELS = 8; // with a text of their own
const LONGEST = 14; // characters of it

/** The space around a picture, in pixels. */
export const EDGE = { left: 58, right: 20, top: 20, bottom: 46 };

/** The range of a column: that of the table, or of the set where that is wider.
 * @param {Column} column @param {Snapshot} now @param {number} place @returns {[number, number]} */
export function rangeOf(column, now, place) {
  if (column.kind === "level") return [column.low - 0.5, column.levels.length - 0.5];
  if (column.kind === "flag") return [-0.5, 1.5];
  const values = now.rows.map((row) => row[place]).filter((v) => v !== null);
  const low = Math.min(column.low, ...values);
  const high = Math.max(column.high, ...values);
  const space = 0.06 * (high - low || Math.abs(high) || 1);
  return [low - space, high + space];
}

/** A value that a column can have. @param {Column} column @param {number} value @returns {number} */
export function snapped(column, value) {
  if (column.kind === "number") return column.whole ? Math.round(value) : value;
  const most = column.kind === "flag" ? 1 : column.levels.length - 1;
  return clamp(Math.round(value), column.kind === "level" && column.low < 0 ? -1 : 0, most);
}

/** A step of a key: a share of the range, and at least one where numbers are whole.
 * @param {Column} column @param {number} share @param {number} range @returns {number} */
export function stepOf(column, share, range) {
  return column.whole ? Math.max(1, Math.round(share * range)) : share * range;
}

/** Values and texts of the marks of an axis, and what they count from.
 * @param {Column} column @param {[number, number]} range @param {number} parts
 * @returns {{marks: [number, string][], offset: number | null}} */
export function marksOf(column, range, parts) {
  if (column.kind === "flag") return { marks: [[0, "no"], [1, "yes"]], offset: null };
  if (column.kind === "level") {
    const step = Math.ceil(column.levels.length / Math.min(parts, MOST_LEVELS));
    const cut = (/** @type {string} */ name) => (name.length > LONGEST ? name.slice(0, LONGEST - 1) + "…" : name);
    const marks = column.levels.flatMap((name, i) => (i % step ? [] : [/** @type {[number, string]} */ ([i, cut(name)])]));
    return { marks, offset: null };
  }
  const all = ticks(range[0], range[1], parts);
  const integers = all.filter((value) => Math.abs(value - Math.round(value)) < 1e-9);
  const values = column.whole && integers.length > 1 ? integers : all;
  const { texts, offset } = tickTexts(values);
  return { marks: values.map((value, i) => [value, texts[i]]), offset };
}

/** The name of an axis, with what its ticks count from. @param {string} name @param {number | null} offset @returns {string} */
export function axisName(name, offset) {
  const cut = name.length > 48 ? name.slice(0, 47) + "…" : name;
  return offset === null ? cut : `${cut} (from ${offset})`;
}

/** The ranges of both axes. They stay while something is dragged, so that nothing jumps under the pointer. */
export class Frame {
  /** @param {PageData} data */
  constructor(data) {
    this.data = data;
    this.held = false;
    /** @type {[number, number]} */
    this.xs = [0, 1];
    /** @type {[number, number]} */
    this.ys = [0, 1];
    this.x = data.columns[0];
    this.y = data.columns[0];
    this.flat = false; // one column only: the objects stand on a line
  }

  /** @param {Snapshot} now */
  fit(now) {
    this.x = this.data.columns[now.x];
    this.y = this.data.columns[now.y];
    this.flat = now.x === now.y;
    if (this.held) return;
    this.xs = rangeOf(this.x, now, now.x);
    this.ys = rangeOf(this.y, now, now.y);
  }

  /** The value at a share of the way from low to high. @param {"x" | "y"} axis @param {number} share @returns {number} */
  value(axis, share) {
    const [low, high] = axis === "x" ? this.xs : this.ys;
    return snapped(axis === "x" ? this.x : this.y, low + share * (high - low));
  }

  /** @param {"x" | "y"} axis @param {number} value @returns {number} */
  share(axis, value) {
    const [low, high] = axis === "x" ? this.xs : this.ys;
    return (value - low) / (high - low);
  }
}

/** Lines, ticks and names of both axes.
 * @param {Frame} frame @param {number} width @param {number} height @returns {SVGElement[]} */
export function drawAxes(frame, width, height) {
  const right = width - EDGE.right;
  const bottom = height - EDGE.bottom;
  const [inside, up] = [right - EDGE.left, bottom - EDGE.top];
  const across = marksOf(frame.x, frame.xs, Math.max(2, Math.floor(inside / 58)));
  const made = across.marks.flatMap(([value, text]) => {
    const x = EDGE.left + frame.share("x", value) * inside;
    return [svg("line", { class: "grid", x1: x, x2: x, y1: EDGE.top, y2: bottom }), svg("text", { class: "tick", x, y: bottom + 18, text })];
  });
  made.push(svg("text", { class: "name", x: EDGE.left + inside / 2, y: height - 8, text: axisName(frame.x.name, across.offset) }));
  if (!frame.flat) {
    const along = marksOf(frame.y, frame.ys, Math.max(2, Math.floor(up / 42)));
    for (const [value, text] of along.marks) {
      const y = bottom - frame.share("y", value) * up;
      made.push(svg("line", { class: "grid", x1: EDGE.left, x2: right, y1: y, y2: y }), svg("text", { class: "tick side", x: EDGE.left - 8, y: y + 4, text: shortened(text) }));
    }
    made.push(svg("text", { class: "name", transform: `translate(13 ${EDGE.top + up / 2}) rotate(-90)`, text: axisName(frame.y.name, along.offset) }));
  }
  made.push(svg("line", { class: "axis", x1: EDGE.left, x2: right, y1: bottom, y2: bottom }));
  if (!frame.flat) made.push(svg("line", { class: "axis", x1: EDGE.left, x2: EDGE.left, y1: EDGE.top, y2: bottom }));
  return made;
}

/** A text at the side of an axis has little space. @param {string} text @returns {string} */
function shortened(text) {
  return text.length > 7 && !/^[+−\d]/.test(text) ? text.slice(0, 6) + "…" : text;
}

/** A value of a number column in words, for a slider. @param {Column} column @param {number} value @returns {string} */
export function spoken(column, value) {
  return `${column.name} ${shortly(value)}`;
}
