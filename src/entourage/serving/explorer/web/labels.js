// What the controls and headings of the page show.

import { byId, write } from "./dom.js";
import { letter } from "./numbers.js";
import { measure } from "./words.js";

/** @typedef {import("./main.js").Explorer} Explorer */

/** @param {Explorer} page */
export function drawControls(page) {
  const { data, state } = page;
  const { now, view } = state;
  const given = data.sets[now.set];
  byId("x-axis").value = String(now.x);
  byId("y-axis").value = String(now.y);
  byId("curve-column").value = String(view.column);
  byId("show-arrows").checked = view.arrows;
  byId("show-map").checked = view.map;
  byId("undo").disabled = !state.past.length;
  byId("redo").disabled = !state.future.length;
  byId("reset").disabled = !state.edited();
  const cut = given.left_out ? `; ${given.left_out} of its objects are left out` : "";
  const left = data.left_out ? `; ${data.left_out} sets of the table are left out` : "";
  write(byId("where"), given.id);
  write(byId("count"), `${now.set + 1} of ${data.sets.length}${cut}${left}`);
  byId("search").placeholder = "find a set by its id";
  byId("beside").value = view.beside;
  for (const name of ["decoy", "enemy"]) write(byId(`${name}-of`), ` for ${letter(now.selected)}`);
  if (page.shownBeside === view.beside) return;
  page.shownBeside = view.beside;
  const control = view.beside === "control";
  write(byId("h-beside"), control ? "Context-ablated control" : (data.models[1] ?? ""));
  write(byId("beside-text"), control ? "The same weights, but each object is scored against copies of itself: the difference from the model is what context adds." : "Another model on the same set: drag here or there, both move.");
  page.table.besides(control ? `control: ${measure(data, data.temperatures[0] !== null)}` : `${data.models[1]}: ${measure(data, data.temperatures[1] !== null)}`, control ? "context adds" : "difference");
}
