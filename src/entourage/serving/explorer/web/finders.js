// Best decoy, worst enemy, a reversal: what the page looks for when it is asked.

import { bestDecoy, grid, withEach } from "./decoys.js";
import { reversals, withoutEach, worstEnemy } from "./influence.js";
import { MOST_OBJECTS } from "./matrix.js";
import { letter, percent, shortly } from "./numbers.js";
import { inPieces } from "./pieces.js";
import { nameOf } from "./words.js";

/** @typedef {import("./main.js").Explorer} Explorer */

/** Cells of the map of winners, and places of decoys, each way. */
export const CELLS = 22;
/** What a decoy raises. @param {import("./types.js").PageData} data @returns {string} */
function gained(data) {
  return data.temperatures[0] === null ? "the utility" : "the log-odds";
}

/** Against whom: the objects of a subset are chosen each for itself. @param {import("./types.js").PageData} data @param {string} whom
 * @returns {string} */
function against(data, whom) {
  return data.task === "subset" ? "" : ` against ${whom}`;
}

/** New objects at every place of the picture, like the selected one in all else. @param {Explorer} page */
export function candidates({ state, frame }) {
  const { now } = state;
  return grid(now.rows[now.selected], now.x, now.y, (s) => frame.value("x", s), (s) => frame.value(frame.flat ? "x" : "y", s), CELLS);
}

/** The new object that helps the selected one most against the present ones. @param {Explorer} page */
export async function findDecoy(page) {
  const { state, data } = page;
  const live = await page.settled();
  const { now } = state;
  const k = live ? live.offered.indexOf(now.selected) : -1;
  if (!live || k < 0 || live.offered.length < 2) return page.say("Select an object that is on offer beside others.");
  const [name, target] = [nameOf(now, now.selected), now.selected];
  page.say(`Trying ${CELLS * CELLS} places for a decoy …`);
  const places = candidates(page);
  const key = page.keyOfSet();
  const rows = live.offered.map((i) => now.rows[i]);
  const added = await withEach(inPieces(page.score, () => page.keyOfSet() !== key), rows, now.situation, places);
  const found = bestDecoy(data, live.own.scores, added, k);
  if (!found) return page.say(`No new object in this picture helps ${name}${against(data, "the others")}.`);
  state.add(places[found.candidate], `decoy for ${letter(target)}`);
  const decoy = letter(state.now.rows.length - 1);
  state.now.selected = target;
  const after = added[found.candidate].probabilities;
  const own = after ? ` Its probability goes from ${percent(live.own.values[k])} to ${percent(after[k])}, that of ${decoy} is ${percent(after[after.length - 1])}.` : "";
  page.say(`Best decoy: ${decoy} raises ${gained(data)} of ${name}${against(data, "the others")} by ${shortly(found.gain)}.${own} Undo removes it.`, found.gain);
  await page.refresh();
}

/** The object whose removal helps the selected one most. @param {Explorer} page */
export async function findEnemy(page) {
  const { state, data } = page;
  const live = await page.settled();
  const { now } = state;
  const k = live ? live.offered.indexOf(now.selected) : -1;
  if (!live || k < 0 || !live.without.length) return page.say("Select an object that is on offer beside at least two others.");
  const found = worstEnemy(data, live.own.scores, live.without, k);
  if (!found) return page.say(`No object on offer hurts ${nameOf(now, now.selected)}${against(data, "the rest")}.`);
  const enemy = live.offered[found.enemy];
  state.change((next) => (next.on[enemy] = false));
  page.say(`Worst enemy: without ${nameOf(now, enemy)}, ${gained(data)} of ${nameOf(now, now.selected)}${against(data, "the rest")} rise${data.temperatures[0] === null ? "s" : ""} by ${shortly(found.gain)}. It is off the offer now; undo puts it back.`, found.gain);
  await page.refresh();
}

/** A pair whose order changes when a third object is removed: in this set, or in the next that has one. @param {Explorer} page */
export async function findReversal(page) {
  const { state, data } = page;
  const live = await page.settled();
  /** @param {{better: number, worse: number, third: number}} one @param {number[]} places */
  const tell = async (one, places) => {
    const [better, worse, third] = [one.better, one.worse, one.third].map((k) => places[k]);
    const { now } = state;
    state.change((next) => {
      next.on[third] = false;
      next.selected = worse;
    });
    page.say(`Preference reversal: with ${nameOf(now, third)} on offer, ${nameOf(now, better)} is better than ${nameOf(now, worse)}; without it, the order reverses. It is off the offer now; undo puts it back.`);
    await page.refresh(true);
  };
  const here = live ? reversals(live.own.scores, live.without) : [];
  if (live && here.length) return tell(here[0], live.offered);
  const [key, count] = [page.keyOfSet(), data.sets.length];
  const score = inPieces(page.score, () => page.keyOfSet() !== key);
  for (let step = 1; step < count; step++) {
    const at = (state.now.set + step) % count;
    const one = data.sets[at];
    if (one.rows.length < 3 || one.rows.length > MOST_OBJECTS) continue;
    if (step % 10 === 1) page.say(`No reversal here. Looking at the other sets: ${step} of ${count - 1} …`);
    const [whole] = await score([one]);
    const found = reversals(whole.scores, await withoutEach(score, one.rows, one.situation));
    if (!found.length) continue;
    state.show(at);
    return tell(found[0], one.rows.map((_, i) => i));
  }
  page.say("No preference reverses in any set of this page when one object is removed.");
}
