// What follows when nobody moves: the model at the side, influence, the demand curve, the map of winners.

import { strongest } from "./arrows.js";
import { controlOfMoves, withoutContext } from "./control.js";
import { drawCurve, emptyCurve } from "./curve.js";
import { newWinners, withEach } from "./decoys.js";
import { auditOf, demandOf, evenly, movesOf, withMoves } from "./demand.js";
import { byId, write } from "./dom.js";
import { CELLS, candidates } from "./finders.js";
import { influenceMatrix, withoutEach } from "./influence.js";
import { judge } from "./judge.js";
import { MOST_OBJECTS, drawMatrix } from "./matrix.js";
import { clamp, letter, percent, shortly } from "./numbers.js";
import { STEPS } from "./situation.js";
import { comparable, moreAndLess, nameOf } from "./words.js";

/** @typedef {import("./main.js").Explorer} Explorer */
/** @typedef {import("./types.js").Live} Live */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Score} Score */

const POINTS = 33; // of a demand curve

/** The control beside the model. @param {Explorer} page @param {Live} live @param {Row[]} rows @param {Score} score */
export async function analyseControl(page, live, rows, score) {
  const { data, state } = page;
  if (state.view.beside !== "control" || live.beside) return;
  if (live.offered.length <= MOST_OBJECTS) live.beside = judge(data, 0, await withoutContext(data, score, rows, state.now.situation));
  page.draw();
}

/** What the context, or the other model, changes. @param {Explorer} page @param {Live} live */
export function sayGap({ data, state }, { offered, own, beside }) {
  if (!beside && offered.length > MOST_OBJECTS && state.view.beside === "control") return write(byId("gap"), `The control is scored for up to ${MOST_OBJECTS} objects on offer.`);
  if (!beside?.valid || !own.valid) return write(byId("gap"), beside && own.valid ? "It gives no scores for this set." : "");
  const control = state.view.beside === "control";
  const turned = own.ranks.filter((r, k) => r !== beside.ranks[k]).length;
  const order = turned ? `${turned} of ${offered.length} ranks differ.` : "The order is the same.";
  if (!comparable(state.view.beside, own, beside)) return write(byId("gap"), `${own.probabilities || beside.probabilities ? "Only one of the two has probabilities" : "Utilities of two models have scales of their own"}: compare the ranks. ${order}`);
  const told = moreAndLess(own, offered, own.values.map((v, k) => v - beside.values[k]));
  const same = control ? "Context adds nothing here." : "Both say the same.";
  const little = turned ? `Probabilities or utilities hardly differ. ${order}` : same;
  write(byId("gap"), told ? `${control ? "Context" : data.models[0]} gives ${told}${own.probabilities ? ", in percentage points" : ""}. ${order}` : little);
}

/** Arrows and matrix. @param {Explorer} page @param {Live} live @param {Row[]} rows @param {Score} score @param {Score} other */
export async function analyseInfluence(page, live, rows, score, other) {
  const { now, view } = page.state;
  if (live.offered.length <= MOST_OBJECTS) {
    live.without = await withoutEach(score, rows, now.situation);
    live.matrix = influenceMatrix(live.own.scores, live.without);
    drawInfluence(page, live);
    if (view.beside === "model" && live.beside) {
      live.besideMatrix = influenceMatrix(live.beside.scores, await withoutEach(other, rows, now.situation));
    }
  }
  drawInfluence(page, live);
}

/** @param {Explorer} page @param {Live} live */
function drawInfluence({ state, pictures }, live) {
  const { now, view } = state;
  const known = live.own.valid && view.arrows;
  pictures.own.arrows(known ? strongest(live.offered, live.matrix, now.selected) : []);
  pictures.beside.arrows(known ? strongest(live.offered, live.besideMatrix, now.selected) : []);
  drawMatrix(now, live.offered, live.matrix, live.own.spread);
}

/** Demand for the selected object, and its audit.
 * @param {Explorer} page @param {Live} live @param {Row[]} rows @param {Score} score @param {Score} other */
export async function analyseDemand(page, live, rows, score, other) {
  const { data, state } = page;
  const { now, view } = state;
  if (view.column < 0) return;
  const k = live.offered.indexOf(now.selected);
  const column = data.columns[view.column];
  byId("curve-of").textContent = nameOf(now, now.selected);
  const at = now.rows[now.selected][view.column];
  const there = now.rows.map((row) => row[view.column]).filter((v) => v !== null);
  const [low, high] = [Math.min(column.low, ...there), Math.max(column.high, ...there)];
  if (!byId("curve-slider").matches(":active")) page.curveRange = [low, high];
  const [from, to] = page.curveRange;
  drawSlider(page, at, from, to);
  if (k < 0) return emptyCurve("The selected object is not on offer.");
  if (!live.own.valid || !(to > from)) return emptyCurve(to > from ? "" : `${column.name} has one value only.`);
  const inside = at !== null && at > from && at < to ? [at] : [];
  const values = [...new Set([...evenly(from, to, POINTS), ...inside])].sort((a, b) => a - b);
  const moved = movesOf(rows[k], view.column, values);
  const own = demandOf(data, await withMoves(score, rows, now.situation, k, moved), k);
  /** @type {number[] | null} */
  let beside = null;
  const drawn = live.beside?.valid && comparable(view.beside, live.own, live.beside);
  if (view.beside === "model" && drawn) beside = demandOf(data, await withMoves(other, rows, now.situation, k, moved), k);
  if (view.beside === "control" && live.beside && drawn) beside = demandOf(data, await controlOfMoves(data, score, rows, now.situation, k, live.beside.scores, moved), k);
  const verdict = data.price === view.column ? await audited(page, live, rows, score, k) : null;
  const here = demandOf(data, [{ scores: live.own.scores, probabilities: live.own.probabilities ? live.own.values : null }], k)[0];
  const names = [data.models[0], ...(beside ? [page.besideName()] : [])];
  drawCurve({ column, values, own, beside, at, here, object: now.selected, probability: live.own.probabilities, broken: verdict?.broken ?? [], names });
  const audit = byId("audit");
  audit.className = verdict?.flagged ? "audit flag" : "audit soft";
  audit.dataset.verdict = verdict ? JSON.stringify([verdict.gradient, verdict.move, verdict.monotone, verdict.flagged]) : "";
  write(audit, data.price !== view.column ? "" : (verdict?.text ?? ""));
}

/** @param {Explorer} page @param {number | null} at @param {number} low @param {number} high */
function drawSlider({ state, data }, at, low, high) {
  const input = byId("curve-slider");
  const column = data.columns[state.view.column];
  const share = high > low && at !== null ? clamp((at - low) / (high - low), 0, 1) : 0.5;
  if (!input.matches(":active")) input.value = String(Math.round(STEPS * share));
  input.disabled = !(high > low);
  input.setAttribute("aria-label", `${column.name} of ${nameOf(state.now, state.now.selected)}`);
  input.setAttribute("aria-valuetext", at === null ? "missing" : shortly(at));
  write(byId("curve-value"), at === null ? "missing" : shortly(at));
}

/** The verdict of the economic audit on one object, in words.
 * @param {Explorer} page @param {Live} live @param {Row[]} rows @param {Score} score @param {number} k */
async function audited({ data, state }, live, rows, score, k) {
  const { now, view } = state;
  const column = data.columns[view.column];
  const none = { gradient: 0, move: 0, monotone: 0, broken: /** @type {[number, number][]} */ ([]), flagged: false };
  const name = nameOf(now, now.selected);
  if (!live.own.probabilities) return { ...none, text: "No audit: this model has scores only. Calibrate the ranker with held-out sets; then it has probabilities." };
  if (rows[k][view.column] === null) return { ...none, text: `No audit: ${column.name} of ${name} is missing.` };
  if (rows.length < 2 && !data.outsides[0] && data.task !== "subset") return { ...none, text: "No audit: the only object on offer is always chosen." };
  if (!column.audited) return { ...none, text: `No audit: ${column.name} has values that are not finite.` };
  const found = await auditOf(data, score, rows, now.situation, k, view.column, column.audited);
  const way = data.sign < 0 ? "raises" : "lowers";
  const { low, high, step } = column.audited;
  const fine = `Audit passed: a higher ${column.name} never ${way} demand for ${name}, from ${shortly(low)} to ${shortly(high)}.`;
  const where = found.broken.map(([a, b]) => `from ${shortly(a)} to ${shortly(b)}`);
  if (where.length) where[where.length - 1] += ` (log-odds by up to ${shortly(found.monotone)} ${column.audited.indicator ? "in all" : `in one of ${data.steps - 1} steps`})`;
  else where.push("where it is now");
  if (found.gradient > data.tolerance && !column.audited.indicator) where.push(`by the gradient (log-odds by ${shortly(found.gradient)} a standard deviation)`);
  if (found.move > data.tolerance && !column.audited.indicator) where.push(`by a move of ${shortly(step)} (log-odds by ${shortly(found.move)})`);
  return { ...found, text: found.flagged ? `Flagged by the audit: a higher ${column.name} ${way} demand for ${name} ${where.join(", ")}.` : fine };
}

/** Where a new object would change the winner. @param {Explorer} page @param {Live} live @param {Row[]} rows @param {Score} score */
export async function analyseMap(page, live, rows, score) {
  const { now, view } = page.state;
  byId("map-text").hidden = !view.map;
  if (!view.map || !live.own.valid) return page.pictures.own.map(null);
  const added = await withEach(score, rows, now.situation, candidates(page));
  const winners = newWinners(live.own.scores, added).map((k) => (k < 0 ? -1 : live.offered[k]));
  page.pictures.own.map({ winners, count: CELLS });
  const share = winners.filter((w) => w >= 0).length / winners.length;
  write(byId("map-text"), `Map of winners: a new object, like ${letter(now.selected)} in all else, would change which of the present ones is best in ${percent(share)} of the area; the colour and the letter are the new winner's.`);
}
