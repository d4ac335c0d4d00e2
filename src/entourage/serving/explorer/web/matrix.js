// The influence matrix: how the presence of the column's object changes the utility of the row's.

import { byId, html } from "./dom.js";
import { letter, signed } from "./numbers.js";
import { nameOf } from "./words.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */

const STRONGEST = 100; // percent of the colour

/** @param {Snapshot} now @param {number[]} offered @param {number[][] | null} matrix null until it is known */
export function drawMatrix(now, offered, matrix) {
  byId("matrix-few").hidden = offered.length >= 3;
  const table = byId("matrix");
  table.hidden = offered.length < 3;
  if (table.hidden) return;
  const most = Math.max(...(matrix ?? []).flat().filter(Number.isFinite).map(Math.abs), 1e-9);
  const head = html("tr", {}, html("td"), ...offered.map((j) => html("th", { scope: "col", text: letter(j), title: nameOf(now, j) })));
  const rows = offered.map((i, a) => {
    const cells = offered.map((j, b) => {
      if (a === b) return html("td", { class: "none" });
      const value = matrix ? matrix[a][b] : NaN;
      if (!Number.isFinite(value)) return html("td", { text: "–" });
      const strength = Math.round(STRONGEST * Math.sqrt(Math.abs(value) / most));
      const way = value > 0 ? "helps" : "hurts";
      return html("td", { class: signed(value) === "0.00" ? "" : way, style: `--strength:${strength}%`, "data-value": value, title: `The presence of ${nameOf(now, j)} ${way} ${nameOf(now, i)}: ${signed(value, 4)}`, text: signed(value) });
    });
    return html("tr", {}, html("th", { scope: "row", text: letter(i), title: nameOf(now, i) }), ...cells);
  });
  table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...rows));
}
