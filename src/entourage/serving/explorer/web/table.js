// The objects as a table, on a phone as cards: bars, ranks, editable values. It is the picture's equivalent in text.

import { byId, colour, html, ink, write } from "./dom.js";
import { field, fieldText } from "./fields.js";
import { letter, percent } from "./numbers.js";
import { comparable, difference, measure, nameOf, shown } from "./words.js";

/** @typedef {import("./types.js").Judged} Judged */
/** @typedef {import("./types.js").Live} Live */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Snapshot} Snapshot */

const SCALES = [0.1, 0.25, 0.5, 1];

/** @typedef {{edit: (i: number, place: number, value: number | null) => void, toggle: (i: number) => void,
 *   select: (i: number) => void, drop: (i: number) => void, refused: (text: string) => void}} Actions */

/** A bar and its number.
 * @typedef {{cell: HTMLElement, bar: HTMLElement, ghost: HTMLElement, number: HTMLElement}} Bar */

/** @typedef {{row: HTMLElement, box: HTMLInputElement, rank: HTMLElement, own: Bar, change: HTMLElement, beside: Bar,
 *   gap: HTMLElement, fields: (HTMLInputElement | HTMLSelectElement)[]}} Line */

export class ObjectTable {
  /** @param {PageData} data @param {Actions} actions */
  constructor(data, actions) {
    this.data = data;
    this.actions = actions;
    this.key = "";
    this.scale = 1; // what a whole bar stands for
    /** @type {Line[]} */
    this.lines = [];
    this.ownHead = html("th", { scope: "col", role: "columnheader" });
    this.besideHead = html("th", { scope: "col", role: "columnheader", class: "beside" });
    this.gapHead = html("th", { scope: "col", role: "columnheader", class: "beside right" });
    this.nothing = { own: makeBar("nothing", "own", "var(--soft)"), beside: makeBar("nothing", "beside", "var(--soft)") };
    const head = (/** @type {string} */ text, name = "") => html("th", { scope: "col", role: "columnheader", class: name, text });
    byId("objects-head").append(
      head("on offer"),
      head("object", "sticky"),
      head("rank", "right"),
      this.ownHead,
      head("change", "right"),
      this.besideHead,
      this.gapHead,
      ...data.columns.map((column) => head(column.name, column.kind === "number" ? "right" : "")),
      html("th", { scope: "col", role: "columnheader" }, html("span", { class: "hidden", text: "remove" })),
    );
    byId("objects-foot").append(
      html("td", { role: "cell" }),
      html("th", { scope: "row", role: "rowheader", class: "sticky", text: "nothing (outside option)" }),
      html("td", { role: "cell" }),
      this.nothing.own.cell,
      html("td", { role: "cell" }),
      this.nothing.beside.cell,
      html("td", { role: "cell", class: "beside" }),
      html("td", { role: "cell", colspan: data.columns.length + 1, class: "filler" }),
    );
    byId("objects-foot").hidden = !data.outsides.some(Boolean);
    this.ownName = `${data.models[0]}: ${measure(data, data.temperatures[0] !== null)}`;
    this.ownHead.textContent = this.ownName;
    this.settled = false;
  }

  /** What stands beside, and what the difference is called. @param {string} name @param {string} gap */
  besides(name, gap) {
    this.besideHead.textContent = name;
    this.gapHead.textContent = gap;
    for (const one of [...this.lines, this.nothing]) one.beside.cell.setAttribute("data-label", name);
    for (const one of this.lines) one.gap.setAttribute("data-label", gap);
  }

  /** @param {Snapshot} now @param {number} i @returns {Line} */
  line(now, i) {
    const { data, actions } = this;
    const name = nameOf(now, i);
    const box = /** @type {HTMLInputElement} */ (html("input", { type: "checkbox", "aria-label": `${name}: on offer`, onchange: () => actions.toggle(i) }));
    const own = makeBar(this.ownName, "own", colour(i));
    const beside = makeBar(this.besideHead.textContent ?? "", "beside", colour(i));
    const rank = html("td", { role: "cell", class: "number rank", "data-label": "rank" });
    const change = html("td", { role: "cell", class: "number change", "data-label": "change" });
    const gap = html("td", { role: "cell", class: "number gap beside", "data-label": this.gapHead.textContent });
    const fields = data.columns.map((column, k) => field(column, now.rows[i][k], `${name}: ${column.name}`, (value) => actions.edit(i, k, value), actions.refused));
    const drop = html("button", { class: "bare", type: "button", "aria-label": `remove ${name} from the page`, title: "remove from the page", text: "×", onclick: (/** @type {Event} */ e) => { e.stopPropagation(); actions.drop(i); } });
    const row = html(
      "tr",
      { role: "row", "data-object": i, onclick: () => actions.select(i), onfocusin: () => actions.select(i) },
      html("td", { role: "cell", class: "offer" }, box),
      html("th", { scope: "row", role: "rowheader", class: "sticky object" }, html("span", { class: "dot", style: `background:${colour(i)};color:${ink(i)}`, text: letter(i) }), html("span", { class: "label", text: now.labels[i], title: now.labels[i] })),
      rank,
      own.cell,
      change,
      beside.cell,
      gap,
      ...fields.map((one, k) => html("td", { role: "cell", class: `value${data.columns[k].kind === "number" ? " right" : ""}`, "data-label": data.columns[k].name }, one)),
      html("td", { role: "cell", class: "drop" }, drop),
    );
    return { row, box, rank, own, change, beside, gap, fields };
  }

  /** Show the set, and its numbers where they are known.
   * @param {Snapshot} now @param {Live | null} live @param {import("./types.js").View["beside"]} what stands beside */
  draw(now, live, what) {
    const key = JSON.stringify([now.set, now.labels]);
    if (key !== this.key) {
      this.lines = now.rows.map((_, i) => this.line(now, i));
      byId("objects").replaceChildren(...this.lines.map((one) => one.row));
    }
    this.rescale(live, key !== this.key);
    this.key = key;
    this.lines.forEach((line, i) => {
      line.row.classList.toggle("selected", i === now.selected);
      line.row.classList.toggle("off", !now.on[i]);
      line.box.checked = now.on[i];
      this.numbers(line, now.origin[i], live, live ? live.offered.indexOf(i) : -1, what);
      line.fields.forEach((input, k) => {
        const text = fieldText(this.data.columns[k], now.rows[i][k]);
        if (input !== document.activeElement && input.value !== text) input.value = text;
      });
    });
    if (!this.data.outsides.some(Boolean)) return;
    for (const which of /** @type {("own" | "beside")[]} */ (["own", "beside"])) {
      const share = live?.[which]?.nothing ?? null;
      fill(this.nothing[which], (share ?? 0) / this.scale, null, share === null ? "–" : percent(share), share);
    }
  }

  /** Bars of many objects are short: a whole one then stands for less. It never shrinks while a set is on show.
   * @param {Live | null} live @param {boolean} fresh */
  rescale(live, fresh) {
    if (fresh) this.settled = false;
    if (!live?.own.probabilities || !live.own.valid) return;
    const most = Math.max(...live.own.shares, ...(live.beside?.valid ? live.beside.shares : []), live.own.nothing ?? 0, live.beside?.nothing ?? 0);
    const enough = SCALES.find((scale) => scale >= Math.min(1, 1.1 * most)) ?? 1;
    this.scale = this.settled ? Math.max(this.scale, enough) : enough;
    this.settled = true;
    write(this.ownHead, `${this.ownName}${this.scale < 1 ? `, bars to ${100 * this.scale} %` : ""}`);
  }

  /** @param {Line} line @param {number} origin @param {Live | null} live @param {number} k @param {import("./types.js").View["beside"]} what */
  numbers(line, origin, live, k, what) {
    const judged = (/** @type {Judged | null | undefined} */ one) => (one && one.valid && k >= 0 ? one : null);
    const [own, beside, first] = [judged(live?.own), judged(live?.beside), live?.first?.valid ? live.first : null];
    write(line.rank, own ? String(own.ranks[k] + 1) : "–");
    line.row.classList.toggle("best", own !== null && own.ranks[k] === 0);
    const before = own && first && origin >= 0 ? first : null;
    fill(line.own, own ? own.shares[k] / this.scale : 0, before && own?.probabilities ? before.shares[origin] / this.scale : null, own ? shown(own, own.values[k]) : "–", own ? own.values[k] : null);
    fill(line.beside, beside ? beside.shares[k] / this.scale : 0, null, beside ? shown(beside, beside.values[k]) : "–", beside ? beside.values[k] : null);
    tell(line.change, before && own ? own.values[k] - before.values[origin] : null, own);
    tell(line.gap, own && beside && comparable(what, own, beside) ? own.values[k] - beside.values[k] : null, own);
  }
}

/** @param {string} label @param {string} kind @param {string} paint @returns {Bar} */
function makeBar(label, kind, paint) {
  const bar = html("span", { class: "bar", style: `background:${paint}` });
  const ghost = html("span", { class: "ghost", title: "as it was in the table" });
  const number = html("span", { class: "number" });
  const cell = html("td", { role: "cell", class: `wide ${kind}`, "data-label": label }, html("span", { class: "measure" }, html("span", { class: "track", "aria-hidden": "true" }, bar, ghost), number));
  return { cell, bar, ghost, number };
}

/** @param {Bar} one @param {number} share @param {number | null} before @param {string} text @param {number | null} value */
function fill(one, share, before, text, value) {
  one.bar.style.transform = `scaleX(${Math.min(1, share).toFixed(5)})`;
  one.ghost.hidden = before === null || before > 1 || Math.abs(before - share) < 0.0005;
  if (before !== null) one.ghost.style.left = `${(100 * before).toFixed(2)}%`;
  write(one.number, text);
  one.number.dataset.value = value === null ? "" : String(value);
}

/** A difference with a sign and a triangle. @param {HTMLElement} cell @param {number | null} by @param {Judged | null} scale */
function tell(cell, by, scale) {
  const text = by === null || !scale ? "" : difference(scale, by);
  const way = /^[+−]/.test(text) ? (by !== null && by > 0 ? "gain" : "loss") : "";
  write(cell, text);
  for (const name of ["gain", "loss"]) cell.classList.toggle(name, name === way);
  cell.dataset.value = by === null ? "" : String(by);
}
