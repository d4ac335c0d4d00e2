// The influence matrix: how the presence of the column's object changes the utility of the row's.

import { byId, html } from "./dom.js";
import { leastOf, letter, utility } from "./numbers.js";
import { nameOf } from "./words.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */

/** Objects on offer with influence, arrows and a matrix. */
export const MOST_OBJECTS = 40;

const STRONGEST = 100; // percent of the colour

/** @param {Snapshot} now @param {number[]} offered @param {number[][] | null} matrix null until it is known
 * @param {number} spread of the utilities */
export function drawMatrix(now, offered, matrix, spread) {
  const [few, many] = [offered.length < 3, offered.length > MOST_OBJECTS];
  byId("matrix-few").hidden = !few && !many;
  byId("matrix-few").textContent = few ? "At least three objects on offer are needed: one is removed, and two are compared." : `Influence is found for up to ${MOST_OBJECTS} objects on offer.`;
  const table = byId("matrix");
  table.hidden = few || many;
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
      return html("td", { class: Math.abs(value) < leastOf(spread) ? "" : way, style: `--strength:${strength}%`, "data-value": value, title: `The presence of ${nameOf(now, j)} ${way} ${nameOf(now, i)}: ${utility(value, spread)}`, text: utility(value, spread) });
    });
    return html("tr", {}, html("th", { scope: "row", text: letter(i), title: nameOf(now, i) }), ...cells);
  });
  table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...rows));
}
