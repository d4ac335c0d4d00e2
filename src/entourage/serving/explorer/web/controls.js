// Buttons, selects and keys: what people do, and what of the page follows.

import { snapped } from "./axes.js";
import { asCsv } from "./csv.js";
import { byId, html } from "./dom.js";
import { asPng, asSvg, download } from "./export.js";
import { findDecoy, findEnemy, findReversal } from "./finders.js";
import { STALE } from "./pieces.js";
import { STEPS } from "./situation.js";

/** @typedef {import("./main.js").Explorer} Explorer */

/** Connect all controls of the page. @param {Explorer} page */
export function connect(page) {
  axes(page);
  sets(page);
  slider(page);
  const actions = actionsOf(page);
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  for (const [id, name] of /** @type {[string, "arrows" | "map"][]} */ ([["show-arrows", "arrows"], ["show-map", "map"]])) {
    byId(id).addEventListener("change", () => {
      page.state.view[name] = byId(id).checked;
      page.refresh();
    });
  }
  addEventListener("keydown", (e) => {
    const typing = /** @type {any} */ (e.target)?.matches?.("input:not([type=checkbox]):not([type=range])");
    if (!(e.ctrlKey || e.metaKey) || typing) return;
    const key = e.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    e.preventDefault();
    actions[key === "y" || e.shiftKey ? "redo" : "undo"]();
  });
}

/** @param {Explorer} page @returns {Record<string, () => any>} */
function actionsOf(page) {
  const { state } = page;
  /** @param {(page: Explorer) => Promise<void>} find */
  const looking = (find) => async () => {
    if (!page.models.length) return page.say("The model is still being loaded.");
    try {
      await page.working(find(page));
    } catch (error) {
      if (error !== STALE) throw error;
    }
  };
  const pictures = () => asSvg(page.shownPictures());
  return {
    previous: () => page.show(state.now.set - 1),
    next: () => page.show(state.now.set + 1),
    undo: () => state.undo() && page.show(null),
    redo: () => state.redo() && page.show(null),
    reset: () => page.show(state.now.set),
    decoy: looking(findDecoy),
    enemy: looking(findEnemy),
    reversal: looking(findReversal),
    add: () => {
      state.add(state.now.rows[state.now.selected], "new");
      page.say("A copy of the selected object is on offer, in the same place: drag it, or change its values.");
      page.refresh();
    },
    "save-csv": async () => {
      const live = await page.settled(); // scores of the values that are shown, also right after an edit
      if (live) download(new Blob([asCsv(page.data, state.now, live)], { type: "text/csv" }), "set.csv");
    },
    "save-svg": () => download(new Blob([pictures()], { type: "image/svg+xml" }), "set.svg"),
    "save-png": async () => download(await asPng(pictures()), "set.png"),
  };
}

/** @param {Explorer} page */
function axes(page) {
  const { data, state } = page;
  for (const [id, place] of /** @type {[string, "x" | "y"][]} */ ([["x-axis", "x"], ["y-axis", "y"]])) {
    byId(id).append(...data.columns.map((column, i) => html("option", { value: i, text: column.name })));
    byId(id).addEventListener("change", () => page.edit((now) => (now[place] = Number(byId(id).value))));
  }
  const beside = byId("beside");
  if (data.models.length > 1) beside.append(html("option", { value: "model", text: data.models[1] }));
  if (data.control) beside.append(html("option", { value: "control", text: "context-ablated control" }));
  beside.append(html("option", { value: "", text: "nothing" }));
  byId("beside-box").hidden = beside.children.length < 2;
  beside.addEventListener("change", () => {
    state.view.beside = beside.value;
    page.refresh();
  });
}

/** @param {Explorer} page */
function sets(page) {
  const { data } = page;
  byId("sets").append(...data.sets.map((one) => html("option", { value: one.id })));
  byId("search").addEventListener("change", () => {
    const wanted = byId("search").value.trim();
    if (wanted === "") return;
    const at = data.sets.findIndex((one) => one.id.trim() === wanted);
    if (at < 0) page.say(`No set of this page has the id ${wanted}.`);
    else page.show(at);
  });
  byId("presets").append(
    ...data.presets.map((one) =>
      html("button", {
        type: "button",
        text: one.name,
        onclick: () => {
          page.show(one.set);
          page.select(one.selected);
          page.say(one.text);
        },
      }),
    ),
  );
  byId("presets").hidden = data.presets.length === 0;
}

/** @param {Explorer} page */
function slider(page) {
  const { data, state } = page;
  const columns = data.columns.flatMap((column, i) => (column.kind === "number" ? [html("option", { value: i, text: column.name })] : []));
  byId("curve-column").append(...columns);
  byId("curve-column").addEventListener("change", () => {
    state.view.column = Number(byId("curve-column").value);
    page.refresh();
  });
  const input = byId("curve-slider");
  Object.assign(input, { min: "0", max: String(STEPS), step: "1" });
  let begun = false;
  input.addEventListener("input", () => {
    const [low, high] = page.curveRange;
    page.edit((now) => (now.rows[now.selected][state.view.column] = snapped(data.columns[state.view.column], low + (Number(input.value) / STEPS) * (high - low))), begun);
    begun = true;
  });
  input.addEventListener("change", () => {
    begun = false;
    page.refresh();
  });
}
