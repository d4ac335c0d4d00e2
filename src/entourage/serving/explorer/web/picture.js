// The set as points over two columns: drag them, or move them by the arrow keys. One picture for each model.

import { drawArrows } from "./arrows.js";
import { EDGE, drawAxes, snapped, stepOf } from "./axes.js";
import { colour, ink, svg, write } from "./dom.js";
import { drawMap } from "./map.js";
import { clamp, letter } from "./numbers.js";

/** @typedef {import("./types.js").Arrow} Arrow */
/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./axes.js").Frame} Frame */

/** What a picture tells the page; a place is null where it is not changed.
 * @typedef {{select: (i: number) => void, begin: () => void, move: (i: number, x: number | null, y: number | null) => void,
 *   end: () => void, toggle: (i: number) => void}} Actions */

const PULL = 10; // pixels before an object without a value gets one
const SMALL = 9; // radius of an object that is not on offer

export class Picture {
  /** @param {SVGElement} root @param {Frame} frame @param {Actions} actions */
  constructor(root, frame, actions) {
    this.root = root;
    this.width = 0;
    this.height = 0;
    this.frame = frame;
    this.actions = actions;
    this.layers = Object.fromEntries(["map", "axes", "arrows", "points", "halo"].map((name) => [name, root.appendChild(svg("g", { class: `layer-${name}` }))]));
    /** @type {SVGElement[]} */
    this.points = [];
    /** @type {number[]} */
    this.radii = [];
    /** @type {Arrow[]} */
    this.shownArrows = [];
    /** @type {{winners: number[], count: number} | null} */
    this.shownMap = null;
    /** @type {{i: number, dx: number, dy: number, startX: number, startY: number, moved: boolean} | null} */
    this.drag = null;
    /** @type {Snapshot | null} */
    this.now = null;
    this.layers.halo.setAttribute("aria-hidden", "true");
    this.layers.halo.addEventListener("pointerdown", (e) => this.now && this.take(/** @type {PointerEvent} */ (e), this.now.selected));
    root.addEventListener("pointermove", (e) => this.pull(e));
    for (const name of ["pointerup", "pointercancel"]) root.addEventListener(name, () => this.release());
    this.measure();
    new ResizeObserver(() => this.measure() && this.redraw()).observe(root);
  }

  /** Take the size that the page gives; a unit is a pixel, so that texts have one size. @returns {boolean} whether it changed */
  measure() {
    const [width, height] = [this.root.clientWidth || 560, this.root.clientHeight || 400];
    if (width === this.width && height === this.height) return false;
    this.width = width;
    this.height = height;
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    return true;
  }

  /** Where an object is; one without a value stands at the edge.
   * @param {number} i @returns {[number, number]} */
  place(i) {
    const { now, frame } = this;
    const [width, height] = [this.width, this.height];
    const x = now ? now.rows[i][now.x] : null;
    const y = now ? now.rows[i][now.y] : null;
    const [right, bottom] = [width - EDGE.right, height - EDGE.bottom];
    const left = x === null ? EDGE.left : EDGE.left + frame.share("x", x) * (right - EDGE.left);
    if (frame.flat) return [left, (EDGE.top + bottom) / 2];
    return [left, y === null ? bottom : bottom - frame.share("y", y) * (bottom - EDGE.top)];
  }

  /** Draw axes and points. Strengths are from 0 to 1, null for those that are not scored.
   * @param {Snapshot} now @param {(number | null)[]} strengths @param {string[]} descriptions */
  draw(now, strengths, descriptions) {
    this.now = now;
    this.strengths = strengths;
    this.descriptions = descriptions;
    this.redraw();
  }

  redraw() {
    const { now, strengths, descriptions } = this;
    if (!now || !strengths || !descriptions) return;
    this.layers.axes.replaceChildren(...drawAxes(this.frame, this.width, this.height));
    if (this.points.length !== now.rows.length) {
      this.points = now.rows.map((_, i) => this.made(i));
      this.layers.points.replaceChildren(...this.points);
    }
    now.rows.forEach((_, i) => this.update(now, i, strengths[i], descriptions[i]));
    this.halo(now);
    this.arrows(this.shownArrows);
    this.map(this.shownMap);
  }

  /** @param {number} i @returns {SVGElement} */
  made(i) {
    return svg(
      "g",
      {
        tabindex: 0,
        role: "button",
        "data-object": i,
        onpointerdown: (/** @type {PointerEvent} */ e) => this.take(e, i),
        onkeydown: (/** @type {KeyboardEvent} */ e) => this.key(e, i),
        onfocus: () => this.actions.select(i),
      },
      svg("circle", { class: "touch", r: 22 }),
      svg("circle", { class: "disc" }),
      svg("text", { dy: "0.35em", text: letter(i) }),
      svg("title"),
    );
  }

  /** @param {Snapshot} now @param {number} i @param {number | null} strength @param {string} description */
  update(now, i, strength, description) {
    const one = this.points[i];
    const [x, y] = this.place(i);
    const missing = now.rows[i][now.x] === null || now.rows[i][now.y] === null;
    const hollow = !now.on[i] || missing;
    const radius = strength === null ? SMALL : 10 + 13 * Math.sqrt(clamp(strength, 0, 1));
    this.radii[i] = radius;
    one.setAttribute("class", `point${now.on[i] ? "" : " off"}${missing ? " missing" : ""}${i === now.selected ? " selected" : ""}`);
    one.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    one.setAttribute("aria-pressed", String(i === now.selected));
    one.setAttribute("aria-label", description);
    const [, disc, text, title] = one.children;
    disc.setAttribute("style", `r:${radius.toFixed(1)}px;fill:${hollow ? "var(--card)" : colour(i)};stroke:${colour(i)}`);
    text.setAttribute("style", hollow ? "" : `fill:${ink(i)}`);
    write(title, description);
  }

  /** The selected object again, above all others and in a ring; the order of the objects stays that of the Tab key. @param {Snapshot} now */
  halo(now) {
    const i = now.selected;
    const [x, y] = this.place(i);
    const copies = [...this.points[i].children].slice(1).map((one) => one.cloneNode(true)); // without the place for a finger
    this.layers.halo.setAttribute("class", `layer-halo${now.on[i] ? "" : " off"}${this.points[i].classList.contains("missing") ? " missing" : ""}`);
    this.layers.halo.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    this.layers.halo.replaceChildren(...copies, svg("circle", { class: "ring", r: (this.radii[i] + 4).toFixed(1) }));
  }

  /** @param {Arrow[]} arrows */
  arrows(arrows) {
    const count = this.points.length;
    this.shownArrows = arrows.filter((one) => one.from < count && one.to < count);
    this.layers.arrows.replaceChildren(...drawArrows(this.shownArrows, (i) => this.place(i), (i) => this.radii[i]));
  }

  /** @param {{winners: number[], count: number} | null} map */
  map(map) {
    this.shownMap = map;
    this.layers.map.replaceChildren(...(map ? drawMap(map.winners, map.count, this.width, this.height) : []));
  }

  /** Where the pointer is, in pixels of the picture. @param {PointerEvent} e @returns {[number, number]} */
  at(e) {
    const box = this.root.getBoundingClientRect();
    return [((e.clientX - box.left) / box.width) * this.width, ((e.clientY - box.top) / box.height) * this.height];
  }

  /** @param {PointerEvent} e @param {number} i */
  take(e, i) {
    if (e.button !== 0) return;
    e.preventDefault();
    this.actions.select(i);
    const [px, py] = this.at(e);
    const [x, y] = this.place(i);
    this.drag = { i, dx: px - x, dy: py - y, startX: px, startY: py, moved: false };
    this.root.setPointerCapture?.(e.pointerId);
    this.points[i].focus({ preventScroll: true });
  }

  /** @param {PointerEvent} e */
  pull(e) {
    const { drag, now, frame } = this;
    if (!drag || !now) return;
    const [px, py] = this.at(e);
    if (!drag.moved && px === drag.startX && py === drag.startY) return;
    if (!drag.moved) this.actions.begin();
    drag.moved = true;
    frame.held = true;
    const inside = this.width - EDGE.left - EDGE.right;
    const up = this.height - EDGE.top - EDGE.bottom;
    const stays = (/** @type {number} */ place, /** @type {number} */ by) => now.rows[drag.i][place] === null && Math.abs(by) < PULL;
    const x = stays(now.x, px - drag.startX) ? null : frame.value("x", clamp((px - drag.dx - EDGE.left) / inside, 0, 1));
    const y = frame.flat || stays(now.y, py - drag.startY) ? null : frame.value("y", clamp(1 - (py - drag.dy - EDGE.top) / up, 0, 1));
    this.actions.move(drag.i, x, y);
  }

  release() {
    if (!this.drag) return;
    const { moved } = this.drag;
    this.drag = null;
    this.frame.held = false;
    if (moved) this.actions.end();
  }

  /** @param {KeyboardEvent} e @param {number} i */
  key(e, i) {
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const step = steps[e.key];
    const { now, frame } = this;
    if (step && now && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      if (frame.flat && step[1]) return;
      if (!e.repeat) this.actions.begin();
      const by = (/** @type {"x" | "y"} */ axis, /** @type {number} */ k) => {
        if (k === 0) return null;
        const [low, high] = axis === "x" ? frame.xs : frame.ys;
        const column = axis === "x" ? frame.x : frame.y;
        const size = column.kind === "number" ? stepOf(column, e.shiftKey ? 0.05 : 0.01, high - low) : 1;
        return snapped(column, (now.rows[i][now[axis]] ?? (low + high) / 2) + k * size);
      };
      this.actions.move(i, by("x", step[0]), by("y", step[1]));
    } else if (e.key === " " || e.key === "Delete" || e.key === "Enter") {
      e.preventDefault();
      this.actions.toggle(i);
    }
  }
}
