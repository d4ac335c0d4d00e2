// The demand curve of the selected object: a chart, its values as a table, and the slider along it.

import { EDGE, axisName } from "./axes.js";
import { byId, colour, html, svg } from "./dom.js";
import { exactly, percent, shortly, signed, tickTexts, ticks } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */

/** What is drawn. Curves are probabilities, or utilities against the rest.
 * @typedef {{column: Column, values: number[], own: number[], beside: number[] | null, at: number | null, here: number | null,
 *   object: number, probability: boolean, broken: [number, number][], names: string[]}} Curve */

/** @param {Curve} given */
export function drawCurve(given) {
  const { column, values, own, beside, at, here, object, probability, broken } = given;
  const root = byId("curve");
  const [width, height] = [root.clientWidth || 560, root.clientHeight || 240];
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const all = [...own, ...(beside ?? []), ...(here === null ? [] : [here])];
  const low = probability ? 0 : Math.min(...all);
  const most = probability ? Math.max(...all, 0.05) : Math.max(...all, low + 1e-9);
  const high = most + 0.06 * (most - low);
  const [first, last] = [values[0], values[values.length - 1]];
  const bottom = height - EDGE.bottom;
  const x = (/** @type {number} */ v) => EDGE.left + ((v - first) / (last - first || 1)) * (width - EDGE.left - EDGE.right);
  const y = (/** @type {number} */ v) => bottom - ((v - low) / (high - low || 1)) * (bottom - EDGE.top);
  const path = (/** @type {number[]} */ ys) => ys.map((v, k) => `${k ? "L" : "M"}${x(values[k]).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  const across = ticks(first, last, Math.max(2, Math.floor(width / 100)));
  const texts = tickTexts(across);
  const up = ticks(low, high, 3);
  const upTexts = probability ? up.map((v) => `${shortly(100 * v)} %`) : tickTexts(up).texts;
  const made = [
    ...broken.map(([from, to]) => svg("rect", { class: "broken", x: x(from), width: Math.max(2, x(to) - x(from)), y: EDGE.top, height: bottom - EDGE.top })),
    ...up.flatMap((v, k) => [
      svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(v), y2: y(v) }),
      svg("text", { class: "tick side", x: EDGE.left - 8, y: y(v) + 4, text: upTexts[k] }),
    ]),
    ...across.map((v, k) => svg("text", { class: "tick", x: x(v), y: bottom + 18, text: texts.texts[k] })),
    svg("line", { class: "axis", x1: EDGE.left, x2: width - EDGE.right, y1: bottom, y2: bottom }),
    svg("text", { class: "name", x: (EDGE.left + width - EDGE.right) / 2, y: height - 8, text: axisName(column.name, texts.offset) }),
  ];
  if (beside) made.push(svg("path", { class: "line beside", d: path(beside) }));
  made.push(svg("path", { class: "line", d: path(own), stroke: colour(object) }));
  if (at !== null && here !== null && at >= first && at <= last) {
    made.push(svg("line", { class: "here", x1: x(at), x2: x(at), y1: y(here), y2: bottom }), svg("circle", { class: "here", cx: x(at), cy: y(here), r: 6, fill: colour(object) }));
  }
  root.replaceChildren(...made);
  drawTable(given);
}

/** The same as a table. @param {Curve} given */
function drawTable({ column, values, own, beside, probability, names }) {
  const text = (/** @type {number} */ v) => (probability ? percent(v) : signed(v, 3));
  const head = html("tr", {}, ...[column.name, ...names].map((name) => html("th", { scope: "col", class: "right", text: name })));
  const rows = values.map((value, k) =>
    html(
      "tr",
      {},
      html("th", { scope: "row", class: "number", "data-value": value, text: exactly(value, column.low, column.high) }),
      html("td", { class: "number", "data-value": own[k], text: text(own[k]) }),
      ...(beside ? [html("td", { class: "number", "data-value": beside[k], text: text(beside[k]) })] : []),
    ),
  );
  byId("curve-table").replaceChildren(html("thead", {}, head), html("tbody", {}, ...rows));
}

/** Nothing to draw. @param {string} why */
export function emptyCurve(why) {
  byId("curve").replaceChildren();
  byId("curve-table").replaceChildren();
  byId("audit").className = "audit soft";
  byId("audit").textContent = why;
}
