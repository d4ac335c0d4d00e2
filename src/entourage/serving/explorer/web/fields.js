// An input for a value of a column.

import { stepOf } from "./axes.js";
import { html } from "./dom.js";
import { exactly } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */

/** @param {Column} column @param {number | null} value @returns {string} */
export function fieldText(column, value) {
  if (value === null) return "";
  return column.kind === "number" ? exactly(value, column.low, column.high) : String(value);
}

const AMBIGUOUS = /^[-−]?[1-9]\d{0,2}(,\d{3})+$/; // 1,234: a comma of decimals, or of thousands

/** The number that a text says, null for none; NaN where it says no number, or could say two. @param {string} given
 * @returns {number | null} */
function numberOf(given) {
  const text = given.trim().replace("−", "-");
  if (text === "") return null;
  if (AMBIGUOUS.test(text)) return NaN;
  return Number(text.replace(/^(-?\d+),(\d+)$/, "$1.$2"));
}

/** A select for texts and flags, a field for numbers. An empty one is a missing value.
 * @param {Column} column @param {number | null} value @param {string} label @param {(value: number | null) => void} changed
 * @param {(text: string) => void} refused told of what is no number
 * @returns {HTMLInputElement | HTMLSelectElement} */
export function field(column, value, label, changed, refused) {
  if (column.kind !== "number") {
    const names = column.kind === "flag" ? ["no", "yes"] : column.levels;
    const made = /** @type {HTMLSelectElement} */ (html("select", { "aria-label": label }));
    made.append(html("option", { value: "", text: "missing" }), ...names.map((name, i) => html("option", { value: i, text: name === "" ? "(empty)" : name })));
    if (column.kind === "level" && column.low < 0) made.append(html("option", { value: -1, text: "(another text)" }));
    made.value = fieldText(column, value);
    made.addEventListener("change", () => changed(made.value === "" ? null : Number(made.value)));
    return made;
  }
  const made = /** @type {HTMLInputElement} */ (html("input", { type: "text", inputmode: "decimal", autocomplete: "off", placeholder: "missing", "aria-label": label }));
  made.value = fieldText(column, value);
  let last = made.value;
  made.addEventListener("focus", () => (last = made.value));
  made.addEventListener("change", () => {
    const given = numberOf(made.value);
    if (given !== null && !Number.isFinite(given)) {
      const text = made.value.trim();
      refused(`“${text}” ${AMBIGUOUS.test(text) ? "can be read in two ways: write it without the comma, or with a point" : "is no number"}. ${column.name} stays as it was.`);
      made.value = last;
      return;
    }
    last = made.value;
    changed(given);
  });
  made.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "Escape") made.value = last;
    if (e.key !== "ArrowUp" && e.key !== "ArrowDown") return;
    e.preventDefault();
    const size = stepOf(column, e.shiftKey ? 0.05 : 0.01, column.high - column.low || 1);
    const next = (Number(made.value) || 0) + (e.key === "ArrowUp" ? size : -size);
    made.value = exactly(next, column.low, column.high);
    changed(next);
  });
  return made;
}
