// The situation: what is the same for all objects of a set. Numbers have a slider besides.

import { snapped } from "./axes.js";
import { byId, html } from "./dom.js";
import { field, fieldText } from "./fields.js";
import { shortly } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Snapshot} Snapshot */

/** The steps of a slider: it counts them, as a browser rounds large values with small steps. */
export const STEPS = 400;

/** @param {Column} column @param {number | null} value @returns {number} */
function toStep(column, value) {
  const share = ((value ?? (column.low + column.high) / 2) - column.low) / (column.high - column.low || 1);
  return Math.round(STEPS * Math.min(1, Math.max(0, share)));
}

export class Situation {
  /** @param {PageData} data @param {(place: number, value: number | null, joined: boolean) => void} edit
   * @param {(text: string) => void} refused */
  constructor(data, edit, refused) {
    this.columns = data.situation;
    byId("situation").hidden = this.columns.length === 0;
    this.controls = this.columns.map((column, k) => {
      const input = field(column, null, column.name, (value) => edit(k, value, false), refused);
      if (column.kind !== "number" || !(column.high > column.low)) return { input, slider: null };
      const slider = /** @type {HTMLInputElement} */ (html("input", { type: "range", min: 0, max: STEPS, "aria-label": `${column.name}, slider` }));
      let begun = false;
      slider.addEventListener("input", () => {
        edit(k, snapped(column, column.low + (Number(slider.value) / STEPS) * (column.high - column.low)), begun);
        begun = true;
      });
      slider.addEventListener("change", () => (begun = false));
      return { input, slider };
    });
    byId("situation-fields").append(
      ...this.controls.map(({ input, slider }, k) => html("div", { class: "control" }, html("span", { class: "caption", text: this.columns[k].name }), input, ...(slider ? [slider] : []))),
    );
  }

  /** @param {Snapshot} now */
  draw(now) {
    this.controls.forEach(({ input, slider }, k) => {
      const [column, value] = [this.columns[k], now.situation[k]];
      const text = fieldText(column, value);
      if (input !== document.activeElement && input.value !== text) input.value = text;
      if (!slider) return;
      if (slider !== document.activeElement) slider.value = String(toStep(column, value));
      slider.setAttribute("aria-valuetext", value === null ? "missing" : shortly(value));
    });
  }
}
