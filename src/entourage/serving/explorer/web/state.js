// The set on show: edits, and their undo.

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").View} View */

const MOST_STEPS = 200; // of undo

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
    /** @type {View} */
    this.view = {
      beside: data.models.length > 1 ? "model" : data.control ? "control" : "",
      arrows: true,
      map: false,
      column: data.price ?? data.columns.findIndex((one) => one.kind === "number"),
    };
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
    if (this.past.length > MOST_STEPS) this.past.shift();
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

  /** Add an object, and select it. @param {Row} row @param {string} label */
  add(row, label) {
    this.change((now) => {
      now.rows.push([...row]);
      now.labels.push(label);
      now.on.push(true);
      now.origin.push(-1);
      now.selected = now.rows.length - 1;
    });
  }

  /** Remove an object from the page. @param {number} i */
  drop(i) {
    this.change((now) => {
      for (const list of [now.rows, now.labels, now.on, now.origin]) /** @type {any[]} */ (list).splice(i, 1);
      if (now.selected > i) now.selected--;
      now.selected = Math.min(now.selected, now.rows.length - 1);
    });
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
}
