// The set as points over two columns: drag them, or move them by the arrow keys.

import { byId, colour, svg } from "./dom.js";
import { clamp, letter, shortly, ticks } from "./numbers.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").PageData} PageData */

const EDGE = { left: 62, right: 18, top: 16, bottom: 48 };

/** What the picture tells the page.
 * @typedef {{select: (i: number) => void, begin: () => void, move: (i: number, x: number, y: number) => void,
 *   toggle: (i: number) => void}} Actions */

/** The range of a column: that of the table, or of the set where that is wider.
 * @param {Column} column @param {Snapshot} now @param {number} place @returns {[number, number]} */
export function rangeOf(column, now, place) {
  if (column.kind === "level") return [column.low - 0.5, column.levels.length - 0.5];
  const values = now.rows.map((row) => row[place]).filter((v) => v !== null);
  const low = Math.min(column.low, ...values);
  const high = Math.max(column.high, ...values);
  const space = 0.06 * (high - low || Math.abs(high) || 1);
  return [low - space, high + space];
}

export class Picture {
  /** @param {PageData} data @param {Actions} actions */
  constructor(data, actions) {
    this.data = data;
    this.actions = actions;
    this.root = byId("picture");
    const small = this.root.clientWidth > 0 && this.root.clientWidth < 500; // a phone
    this.width = small ? 400 : 640;
    this.height = small ? 380 : 460;
    this.root.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.layers = Object.fromEntries(
      ["map", "axes", "arrows", "points"].map((name) => [name, this.root.appendChild(svg("g", { id: `layer-${name}` }))]),
    );
    /** @type {SVGElement[]} */
    this.points = [];
    /** @type {number[]} */
    this.radii = [];
    /** @type {number | null} */
    this.dragged = null;
    /** @type {[number, number] | null} */
    this.held = null;
    this.root.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => this.drag(e));
    for (const name of ["pointerup", "pointercancel"]) this.root.addEventListener(name, () => this.drop());
  }

  /** Ranges stay while something is dragged, so that nothing jumps under the pointer.
   * @param {Snapshot} now */
  fit(now) {
    if (this.dragged !== null) return;
    this.now = now;
    this.xs = rangeOf(this.data.columns[now.x], now, now.x);
    this.ys = rangeOf(this.data.columns[now.y], now, now.y);
  }

  /** @param {number} value @returns {number} */
  left(value) {
    const [low, high] = this.xs ?? [0, 1];
    return EDGE.left + ((value - low) / (high - low)) * (this.width - EDGE.left - EDGE.right);
  }

  /** @param {number} value @returns {number} */
  top(value) {
    const [low, high] = this.ys ?? [0, 1];
    return this.height - EDGE.bottom - ((value - low) / (high - low)) * (this.height - EDGE.top - EDGE.bottom);
  }

  /** Where an object is; one without a value stands in the middle, hollow.
   * @param {Snapshot} now @param {number} i @returns {[number, number]} */
  place(now, i) {
    const [xs, ys] = [this.xs ?? [0, 1], this.ys ?? [0, 1]];
    const x = now.rows[i][now.x] ?? (xs[0] + xs[1]) / 2;
    const y = now.rows[i][now.y] ?? (ys[0] + ys[1]) / 2;
    return [this.left(x), this.top(y)];
  }

  /** Draw axes and points.
   * @param {Snapshot} now @param {number[]} strengths from 0 to 1 @param {string[]} descriptions */
  draw(now, strengths, descriptions) {
    this.now = now;
    this.fit(now);
    this.axes(now);
    this.layers.points.replaceChildren();
    this.points = now.rows.map((_, i) => this.point(now, i, strengths[i] ?? 0, descriptions[i] ?? ""));
    const order = now.rows.map((_, i) => i).sort((a, b) => Number(a === now.selected) - Number(b === now.selected));
    this.layers.points.append(...order.map((i) => this.points[i]));
  }

  /** @param {Snapshot} now @param {number} i @param {number} strength @param {string} description @returns {SVGElement} */
  point(now, i, strength, description) {
    const [x, y] = this.place(now, i);
    const missing = now.rows[i][now.x] === null || now.rows[i][now.y] === null;
    const radius = now.on[i] ? 11 + 11 * Math.sqrt(strength) : 9;
    this.radii[i] = radius;
    const made = svg(
      "g",
      {
        class: `point${now.on[i] ? "" : " off"}${i === now.selected ? " selected" : ""}`,
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        tabindex: 0,
        role: "button",
        "aria-pressed": i === now.selected,
        "aria-label": description,
        "data-object": i,
        onpointerdown: (/** @type {PointerEvent} */ e) => this.take(e, i),
        onkeydown: (/** @type {KeyboardEvent} */ e) => this.key(e, i),
        onfocus: () => {
          if (this.now?.selected !== i) this.actions.select(i);
        },
      },
      svg("circle", { class: "touch", r: 22 }),
      svg("circle", { r: radius.toFixed(1), fill: now.on[i] && !missing ? colour(i) : "none", stroke: colour(i) }),
      svg("text", { class: now.on[i] && !missing ? "inside" : "", dy: "0.35em", text: letter(i) }),
      svg("title", { text: description }),
    );
    return made;
  }

  /** Columns of levels and flags can't be dragged freely. @param {number} place @param {number} value @returns {number} */
  snapped(place, value) {
    const column = this.data.columns[place];
    if (column.kind === "number") return value;
    const most = column.kind === "flag" ? 1 : column.levels.length - 1;
    return clamp(Math.round(value), column.low < 0 ? -1 : 0, most);
  }

  /** @param {PointerEvent} e @param {number} i */
  take(e, i) {
    e.preventDefault();
    this.actions.select(i);
    if (!this.now) return;
    this.dragged = i;
    this.moved = false;
    const [px, py] = this.at(e);
    const [x, y] = this.place(this.now, i);
    this.held = [px - x, py - y];
    this.root.setPointerCapture?.(e.pointerId);
    /** @type {any} */ (this.points[i])?.focus({ preventScroll: true });
  }

  /** Where the pointer is, in units of the picture. @param {PointerEvent} e @returns {[number, number]} */
  at(e) {
    const box = this.root.getBoundingClientRect();
    return [((e.clientX - box.left) / box.width) * this.width, ((e.clientY - box.top) / box.height) * this.height];
  }

  /** @param {PointerEvent} e */
  drag(e) {
    if (this.dragged === null || !this.held || !this.now || !this.xs || !this.ys) return;
    const [px, py] = this.at(e);
    const across = (clamp(px - this.held[0], EDGE.left, this.width - EDGE.right) - EDGE.left) / (this.width - EDGE.left - EDGE.right);
    const up = (this.height - EDGE.bottom - clamp(py - this.held[1], EDGE.top, this.height - EDGE.bottom)) / (this.height - EDGE.top - EDGE.bottom);
    if (!this.moved) this.actions.begin();
    this.moved = true;
    const x = this.snapped(this.now.x, this.xs[0] + across * (this.xs[1] - this.xs[0]));
    const y = this.snapped(this.now.y, this.ys[0] + up * (this.ys[1] - this.ys[0]));
    this.actions.move(this.dragged, x, y);
  }

  drop() {
    this.dragged = null;
    this.held = null;
  }

  /** @param {KeyboardEvent} e @param {number} i */
  key(e, i) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const step = steps[/** @type {"ArrowLeft"} */ (e.key)];
    if (step && this.now && this.xs && this.ys) {
      e.preventDefault();
      const size = e.shiftKey ? 0.05 : 0.01;
      const by = (/** @type {number} */ place, /** @type {number} */ k, /** @type {[number, number]} */ range) => {
        const value = this.now?.rows[i][place] ?? (range[0] + range[1]) / 2;
        const whole = this.data.columns[place].kind !== "number";
        return this.snapped(place, value + k * (whole ? 1 : size * (range[1] - range[0])));
      };
      this.actions.begin();
      this.actions.move(i, by(this.now.x, step[0], this.xs), by(this.now.y, step[1], this.ys));
    } else if (e.key === " " || e.key === "Delete" || e.key === "Enter") {
      e.preventDefault();
      this.actions.toggle(i);
    }
  }

  /** @param {Snapshot} now */
  axes(now) {
    const [xs, ys] = [this.xs ?? [0, 1], this.ys ?? [0, 1]];
    const [x, y] = [this.data.columns[now.x], this.data.columns[now.y]];
    const bottom = this.height - EDGE.bottom;
    const made = [
      svg("line", { x1: EDGE.left, x2: this.width - EDGE.right, y1: bottom, y2: bottom }),
      svg("line", { x1: EDGE.left, x2: EDGE.left, y1: EDGE.top, y2: bottom }),
      svg("text", { class: "name", x: (EDGE.left + this.width - EDGE.right) / 2, y: this.height - 10, text: x.name }),
      svg("text", { class: "name", transform: `translate(15 ${(EDGE.top + bottom) / 2}) rotate(-90)`, text: y.name }),
    ];
    for (const [value, text] of marks(x, xs)) {
      made.push(svg("text", { class: "tick", x: this.left(value), y: bottom + 18, text }));
      made.push(svg("line", { class: "grid", x1: this.left(value), x2: this.left(value), y1: EDGE.top, y2: bottom }));
    }
    for (const [value, text] of marks(y, ys)) {
      made.push(svg("text", { class: "tick side", x: EDGE.left - 8, y: this.top(value) + 4, text }));
      made.push(svg("line", { class: "grid", x1: EDGE.left, x2: this.width - EDGE.right, y1: this.top(value), y2: this.top(value) }));
    }
    this.layers.axes.replaceChildren(...made);
  }

  /** Influence arrows: from j to i, green and solid where the presence of j helps i, red and dashed where it hurts.
   * @param {Snapshot} now @param {{from: number, to: number, by: number}[]} arrows */
  influence(now, arrows) {
    const most = Math.max(...arrows.map((one) => Math.abs(one.by)), 1e-9);
    this.layers.arrows.replaceChildren(
      ...arrows.map(({ from, to, by }) => {
        const [x1, y1] = this.place(now, from);
        const [x2, y2] = this.place(now, to);
        const length = Math.hypot(x2 - x1, y2 - y1) || 1;
        const [nx, ny] = [-(y2 - y1) / length, (x2 - x1) / length];
        const bend = 0.16 * length;
        const [cx, cy] = [(x1 + x2) / 2 + nx * bend, (y1 + y2) / 2 + ny * bend];
        const last = Math.hypot(x2 - cx, y2 - cy) || 1;
        const stop = Math.min(0.9 * last, (this.radii[to] ?? 11) + 4); // before the circle
        const end = [x2 - ((x2 - cx) / last) * stop, y2 - ((y2 - cy) / last) * stop];
        return svg("path", {
          class: by > 0 ? "helps" : "hurts",
          d: `M${x1.toFixed(1)} ${y1.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${end[0].toFixed(1)} ${end[1].toFixed(1)}`,
          "stroke-width": (1 + 4 * (Math.abs(by) / most)).toFixed(1),
          "marker-end": `url(#${by > 0 ? "helps" : "hurts"})`,
        });
      }),
    );
  }

  /** Colour where a new object would make whom the winner.
   * @param {number[] | null} winners a place of each cell, or the number of objects for the new one @param {number} count */
  map(winners, count) {
    if (!winners || !this.xs || !this.ys) {
      this.layers.map.replaceChildren();
      return;
    }
    const [w, h] = [(this.width - EDGE.left - EDGE.right) / count, (this.height - EDGE.top - EDGE.bottom) / count];
    this.layers.map.replaceChildren(
      ...winners.map((winner, k) =>
        svg("rect", {
          x: (EDGE.left + (k % count) * w).toFixed(1),
          y: (this.height - EDGE.bottom - (Math.floor(k / count) + 1) * h).toFixed(1),
          width: (w + 0.4).toFixed(1),
          height: (h + 0.4).toFixed(1),
          fill: winner < 0 ? "#888" : colour(winner),
          "fill-opacity": winner < 0 ? 0.08 : 0.24,
        }),
      ),
    );
  }
}

/** Values and texts of the marks of an axis.
 * @param {Column} column @param {[number, number] | number[]} range @returns {[number, string][]} */
function marks(column, range) {
  if (column.kind === "level") {
    const step = Math.ceil(column.levels.length / 8);
    return column.levels.flatMap((name, i) => (i % step ? [] : [/** @type {[number, string]} */ ([i, name.slice(0, 12)])]));
  }
  return ticks(range[0], range[1]).map((value) => [value, shortly(value)]);
}
