// The set as a table: bars of probabilities or utilities, ranks, editable values. It is the picture's equivalent in text.

import { byId, colour, html } from "./dom.js";
import { letter, percent, shortly, signed } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").PageData} PageData */

/** What is known of each object: null where it is off.
 * @typedef {{value: number, share: number, rank: number, change: number, twin: number | null}} Live */

/** @typedef {{edit: (i: number, place: number, value: number | null) => void, toggle: (i: number) => void,
 *   select: (i: number) => void, drop: (i: number) => void}} Actions */

/** An input for a value of a column.
 * @param {Column} column @param {number | null} value @param {string} label @param {(value: number | null) => void} changed
 * @returns {HTMLElement} */
export function field(column, value, label, changed) {
  if (column.kind === "level" || column.kind === "flag") {
    const names = column.kind === "flag" ? ["no", "yes"] : column.levels;
    const made = /** @type {HTMLSelectElement} */ (html("select", { "aria-label": label }));
    made.append(html("option", { value: "", text: "–" }), ...names.map((name, i) => html("option", { value: i, text: name })));
    if (column.kind === "level" && column.low < 0) made.append(html("option", { value: -1, text: "other" }));
    made.value = value === null ? "" : String(value);
    made.addEventListener("change", () => changed(made.value === "" ? null : Number(made.value)));
    return made;
  }
  const made = /** @type {HTMLInputElement} */ (html("input", { type: "number", step: "any", "aria-label": label }));
  made.value = value === null ? "" : String(Number(value.toPrecision(6)));
  made.addEventListener("change", () => {
    const given = made.value.trim() === "" ? null : Number(made.value);
    changed(given !== null && !Number.isFinite(given) ? null : given);
  });
  return made;
}

export class ObjectTable {
  /** @param {PageData} data @param {Actions} actions */
  constructor(data, actions) {
    this.data = data;
    this.actions = actions;
    this.body = byId("objects");
    this.key = "";
    /** @type {{row: HTMLElement, bar: HTMLElement, mark: HTMLElement, share: HTMLElement, rank: HTMLElement,
     *   change: HTMLElement, fields: HTMLElement[]}[]} */
    this.rows = [];
    const names = data.columns.map((column) => html("th", { scope: "col", text: column.name }));
    byId("objects-head").append(
      html("th", { scope: "col", text: "on" }),
      html("th", { scope: "col", text: "object" }),
      html("th", { scope: "col", text: "rank" }),
      html("th", { scope: "col", class: "wide", text: data.temperature === null ? "utility" : data.task === "ranking" ? "ranked first" : "probability" }),
      html("th", { scope: "col", text: "change" }),
      ...names,
      html("th", { scope: "col" }, html("span", { class: "hidden", text: "remove" })),
    );
  }

  /** Make the rows; values that are being typed stay. @param {Snapshot} now */
  build(now) {
    this.rows = now.rows.map((values, i) => {
      const name = `${letter(i)} ${now.labels[i]}`.trim();
      const box = /** @type {HTMLInputElement} */ (html("input", { type: "checkbox", "aria-label": `${name}: on offer`, onchange: () => this.actions.toggle(i) }));
      const bar = html("span", { class: "bar", style: `background:${colour(i)}` });
      const mark = html("span", { class: "mark" });
      const [share, rank, change] = [html("span", { class: "number" }), html("td", { class: "number" }), html("td", { class: "number change" })];
      const fields = this.data.columns.map((column, k) => field(column, values[k], `${name}: ${column.name}`, (value) => this.actions.edit(i, k, value)));
      const row = html(
        "tr",
        { "data-object": i, onclick: () => this.actions.select(i) },
        html("td", {}, box),
        html("th", { scope: "row" }, html("span", { class: "dot", style: `background:${colour(i)}`, text: letter(i) }), html("span", { class: "label", text: now.labels[i], title: now.labels[i] })),
        rank,
        html("td", { class: "wide" }, html("span", { class: "track" }, bar, mark), share),
        change,
        ...fields.map((one) => html("td", {}, one)),
        html("td", {}, html("button", { class: "small", type: "button", "aria-label": `remove ${name} from the page`, text: "×", onclick: (/** @type {Event} */ e) => { e.stopPropagation(); this.actions.drop(i); } })),
      );
      return { row, bar, mark, share, rank, change, fields };
    });
    this.body.replaceChildren(...this.rows.map((one) => one.row));
  }

  /** Show numbers. @param {Snapshot} now @param {(Live | null)[]} live */
  draw(now, live) {
    const key = JSON.stringify([now.set, now.labels]);
    if (key !== this.key) this.build(now);
    this.key = key;
    this.rows.forEach((one, i) => {
      const known = live[i];
      one.row.classList.toggle("selected", i === now.selected);
      one.row.classList.toggle("off", !now.on[i]);
      const box = /** @type {HTMLInputElement} */ (one.row.querySelector("input[type=checkbox]"));
      box.checked = now.on[i];
      one.bar.style.width = `${100 * (known?.share ?? 0)}%`;
      one.mark.style.display = known && known.twin !== null ? "block" : "none";
      one.mark.style.left = `${100 * (known?.twin ?? 0)}%`;
      one.share.textContent = known ? (this.data.temperature === null ? signed(known.value) : percent(known.value)) : "–";
      one.rank.textContent = known ? String(known.rank + 1) : "–";
      const moved = known && Math.abs(known.change) >= 0.0005;
      one.change.textContent = moved ? (this.data.temperature === null ? signed(known.change) : signed(100 * known.change, 1)) : "";
      one.change.className = `number change ${moved ? (known.change > 0 ? "gain" : "loss") : ""}`;
      one.fields.forEach((input, k) => {
        if (input === document.activeElement) return;
        const value = now.rows[i][k];
        const shown = value === null ? "" : this.data.columns[k].kind === "number" ? String(Number(value.toPrecision(6))) : String(value);
        if (/** @type {any} */ (input).value !== shown) /** @type {any} */ (input).value = shown;
      });
    });
  }
}

/** The influence matrix as a table: how the presence of the column's object changes the utility of the row's.
 * @param {number[]} offered @param {number[][] | null} matrix */
export function drawMatrix(offered, matrix) {
  const table = byId("matrix");
  if (!matrix || offered.length < 3) {
    table.replaceChildren(html("caption", { text: "Three objects on offer are needed: one is removed, and two are compared." }));
    return;
  }
  const most = Math.max(...matrix.flat().filter(Number.isFinite).map(Math.abs), 1e-9);
  const head = html("tr", {}, html("td"), ...offered.map((j) => html("th", { scope: "col", text: letter(j) })));
  const rows = offered.map((i, a) =>
    html(
      "tr",
      {},
      html("th", { scope: "row", text: letter(i) }),
      ...offered.map((_, b) => {
        const value = matrix[a][b];
        if (!Number.isFinite(value)) return html("td", { class: "none", text: "" });
        const strength = Math.round(100 * Math.sqrt(Math.abs(value) / most) * 0.6);
        const base = value >= 0 ? "var(--helps)" : "var(--hurts)";
        return html("td", { style: `background:color-mix(in srgb, ${base} ${strength}%, transparent)`, text: signed(value), title: shortly(value) });
      }),
    ),
  );
  table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...rows));
}
