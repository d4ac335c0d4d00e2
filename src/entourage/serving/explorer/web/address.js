// The state as the part of the address behind "#": it can be kept and shared.

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./state.js").State} State */

const MOST_OBJECTS = 200; // of an edited set in an address

/** The state as a hash. What is as it was in the table is left out.
 * @param {State} state @returns {string} */
export function hashOf(state) {
  const { set, x, y, selected, rows, labels, on, origin, situation } = state.now;
  /** @type {Record<string, any>} */
  const kept = { set, x, y, selected, view: state.view };
  if (state.edited()) Object.assign(kept, { rows, labels, on, origin, situation });
  return "#" + encodeURIComponent(JSON.stringify(kept));
}

/** @param {any} value @param {number} below @returns {boolean} */
function whole(value, below) {
  return Number.isInteger(value) && value >= 0 && value < below;
}

/** Whether a column can have these values. @param {any[]} values @param {import("./types.js").Column[]} columns @returns {boolean} */
function possible(values, columns) {
  return columns.every(({ kind, levels }, k) => {
    const value = values[k];
    if (value === null) return true;
    if (typeof value !== "number" || !Number.isFinite(value)) return false;
    return kind === "number" || (kind === "level" && value === -1) || whole(value, kind === "flag" ? 2 : levels.length);
  });
}

/** @param {any} list @param {number} length @returns {boolean} */
function listOf(list, length) {
  return Array.isArray(list) && list.length === length;
}

/** Take over a state from an address; false where it doesn't fit this page, and nothing is changed.
 * @param {State} state @param {string} hash @returns {boolean} */
export function takeHash(state, hash) {
  const { data } = state;
  /** @type {any} */
  let kept;
  try {
    kept = JSON.parse(decodeURIComponent(hash.replace(/^#/, "")));
  } catch {
    return false;
  }
  if (kept === null || typeof kept !== "object" || !whole(kept.set, data.sets.length)) return false;
  const next = state.fresh(kept.set);
  if (kept.rows !== undefined && !takeRows(state, next, kept)) return false;
  if (whole(kept.x, data.columns.length)) next.x = kept.x;
  if (whole(kept.y, data.columns.length)) next.y = kept.y;
  if (whole(kept.selected, next.rows.length)) next.selected = kept.selected;
  state.now = next;
  takeView(state, kept.view ?? {});
  return true;
}

/** @param {State} state @param {Snapshot} next @param {any} kept @returns {boolean} whether the edited set fits */
function takeRows({ data }, next, kept) {
  const { rows } = kept;
  if (!Array.isArray(rows) || !rows.length || rows.length > MOST_OBJECTS) return false;
  if (!rows.every((row) => listOf(row, data.columns.length) && possible(row, data.columns))) return false;
  if (!listOf(kept.on, rows.length) || !kept.on.some(Boolean) || !listOf(kept.labels, rows.length)) return false;
  if (!listOf(kept.situation, data.situation.length) || !possible(kept.situation, data.situation)) return false;
  const there = data.sets[kept.set].rows.length;
  next.rows = rows;
  next.on = kept.on.map(Boolean);
  next.labels = kept.labels.map(String);
  next.origin = rows.map((_, i) => (whole(kept.origin?.[i], there) ? kept.origin[i] : -1));
  next.situation = kept.situation;
  return true;
}

/** @param {State} state @param {any} view */
function takeView(state, view) {
  const { data } = state;
  if (view.beside === "" || (view.beside === "control" && data.control) || (view.beside === "model" && data.models.length > 1)) state.view.beside = view.beside;
  for (const name of /** @type {("arrows" | "map")[]} */ (["arrows", "map"])) if (typeof view[name] === "boolean") state.view[name] = view[name];
  if (whole(view.column, data.columns.length) && data.columns[view.column].kind === "number") state.view.column = view.column;
}
