// The set on show: edits, undo, and the state in the address.

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Snapshot} Snapshot */

/** @template T @param {T} value @returns {T} */
const copy = (value) => JSON.parse(JSON.stringify(value));

export class State {
  /** @param {PageData} data */
  constructor(data) {
    this.data = data;
    /** @type {Snapshot[]} */
    this.past = [];
    /** @type {Snapshot[]} */
    this.future = [];
    this.now = this.fresh(0);
  }

  /** A set of the table as it is.
   * @param {number} set @returns {Snapshot} */
  fresh(set) {
    const given = this.data.sets[set];
    const { x, y } = this.now ?? this.data;
    return copy({ set, rows: given.rows, labels: given.labels, on: given.rows.map(() => true), origin: given.rows.map((_, i) => i), situation: given.situation, x, y, selected: 0 });
  }

  /** Change the set on show. What follows in one gesture can be joined into one step of undo.
   * @param {(now: Snapshot) => void} edit @param {boolean} joined */
  change(edit, joined = false) {
    if (!joined) this.keep();
    edit(this.now);
  }

  /** Remember the present state for undo. */
  keep() {
    this.past.push(copy(this.now));
    if (this.past.length > 200) this.past.shift();
    this.future = [];
  }

  /** @returns {boolean} whether there was something to undo */
  undo() {
    const before = this.past.pop();
    if (!before) return false;
    this.future.push(copy(this.now));
    this.now = before;
    return true;
  }

  /** @returns {boolean} whether there was something to redo */
  redo() {
    const after = this.future.pop();
    if (!after) return false;
    this.past.push(copy(this.now));
    this.now = after;
    return true;
  }

  /** Show a set of the table. @param {number} set */
  show(set) {
    this.keep();
    this.now = this.fresh(set);
  }

  /** Places of the objects that are on offer. @returns {number[]} */
  offered() {
    return this.now.on.flatMap((on, i) => (on ? [i] : []));
  }

  /** Whether the set differs from the table's. @returns {boolean} */
  edited() {
    const fresh = this.fresh(this.now.set);
    const of = (/** @type {Snapshot} */ s) => JSON.stringify([s.rows, s.on, s.situation, s.labels]);
    return of(fresh) !== of(this.now);
  }

  /** The state as the part of an address behind "#". @returns {string} */
  toHash() {
    const { set, x, y, selected } = this.now;
    /** @type {Record<string, any>} */
    const kept = { set, x, y, selected };
    if (this.edited()) Object.assign(kept, { rows: this.now.rows, labels: this.now.labels, on: this.now.on, origin: this.now.origin, situation: this.now.situation });
    return "#" + encodeURIComponent(JSON.stringify(kept));
  }

  /** Take over a state from an address; false where it doesn't fit this page.
   * @param {string} hash @returns {boolean} */
  fromHash(hash) {
    try {
      const kept = JSON.parse(decodeURIComponent(hash.replace(/^#/, "")));
      const whole = (/** @type {any} */ v, /** @type {number} */ below) => Number.isInteger(v) && v >= 0 && v < below;
      if (!whole(kept.set, this.data.sets.length)) return false;
      const next = this.fresh(kept.set);
      const d = this.data.columns.length;
      if (whole(kept.x, d)) next.x = kept.x;
      if (whole(kept.y, d)) next.y = kept.y;
      if (kept.rows !== undefined) {
        const number = (/** @type {any} */ v) => v === null || (typeof v === "number" && Number.isFinite(v));
        const fits = Array.isArray(kept.rows) && kept.rows.length > 0 && kept.rows.length <= 200 &&
          kept.rows.every((/** @type {any} */ r) => Array.isArray(r) && r.length === d && r.every(number)) &&
          Array.isArray(kept.on) && kept.on.length === kept.rows.length && kept.on.some(Boolean) &&
          Array.isArray(kept.labels) && kept.labels.length === kept.rows.length &&
          Array.isArray(kept.situation) && kept.situation.length === this.data.situation.length && kept.situation.every(number);
        if (!fits) return false;
        next.rows = kept.rows;
        next.on = kept.on.map(Boolean);
        const there = this.data.sets[kept.set].rows.length;
        next.origin = next.rows.map((_, i) => (whole(kept.origin?.[i], there) ? kept.origin[i] : -1));
        next.labels = kept.labels.map(String);
        next.situation = kept.situation;
      }
      if (whole(kept.selected, next.rows.length)) next.selected = kept.selected;
      this.now = next;
      return true;
    } catch {
      return false;
    }
  }
}
