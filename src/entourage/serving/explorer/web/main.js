// The page: state, model and views put together.

import { alone, bestDecoy, demand, grid, influenceMatrix, reversals, violations, withEach, withoutEach, worstEnemy } from "./analysis.js";
import { drawCurve } from "./curve.js";
import { byId, html } from "./dom.js";
import { argmax, letter, logsum, percent, ranks, shortly, signed } from "./numbers.js";
import { Picture } from "./picture.js";
import { openModels } from "./runtime.js";
import { asCsv, asPng, asSvg, download } from "./save.js";
import { State } from "./state.js";
import { ObjectTable, drawMatrix, field } from "./table.js";

/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Scored} Scored */

const CELLS = 22; // of the map, each way
const POINTS = 33; // of a demand curve
const LONGEST = 30; // objects with arrows and a matrix at once

class Explorer {
  /** @param {PageData} data @param {import("./runtime.js").Model[]} models */
  constructor(data, models) {
    this.data = data;
    this.models = models;
    this.state = new State(data);
    this.picture = new Picture(data, {
      select: (i) => this.select(i),
      begin: () => this.state.keep(),
      move: (i, x, y) => this.edit((now) => { now.rows[i][now.x] = x; now.rows[i][now.y] = y; }, true),
      toggle: (i) => this.toggle(i),
    });
    this.table = new ObjectTable(data, {
      edit: (i, place, value) => this.edit((now) => { now.rows[i][place] = value; }),
      toggle: (i) => this.toggle(i),
      select: (i) => this.select(i),
      drop: (i) => this.drop(i),
    });
    /** @type {Scored | null} */
    this.first = null; // of the table's own set, for changes
    this.column = data.price ?? data.columns.findIndex((one) => one.kind === "number");
    this.wanted = 0;
    this.busy = false;
    this.mapKey = "";
    this.situationKey = "";
    this.fresh = true;
    /** @type {Record<string, any>} */
    this.live = {};
    this.controls();
    if (location.hash.length > 1) this.state.fromHash(location.hash);
    addEventListener("hashchange", () => {
      if (location.hash !== this.state.toHash() && this.state.fromHash(location.hash)) this.refresh(true);
    });
  }

  /** @param {import("./types.js").SetToScore[]} sets */
  score = (sets) => this.models[0].score(sets);

  // --- what people do -------------------------------------------------------------------------------

  /** @param {(now: import("./types.js").Snapshot) => void} change @param {boolean} joined */
  edit(change, joined = false) {
    this.state.change(change, joined);
    this.refresh();
  }

  /** @param {number} i */
  select(i) {
    if (this.state.now.selected === i) return;
    this.state.now.selected = i;
    this.refresh();
  }

  /** @param {number} i */
  toggle(i) {
    const { on } = this.state.now;
    if (on[i] && on.filter(Boolean).length === 1) return this.say("One object must stay on offer.");
    this.edit((now) => { now.on[i] = !now.on[i]; });
  }

  /** @param {number} i */
  drop(i) {
    const { now } = this.state;
    if (now.on.filter((on, k) => on && k !== i).length === 0) return this.say("One object must stay on offer.");
    this.edit((snapshot) => {
      for (const list of [snapshot.rows, snapshot.labels, snapshot.on, snapshot.origin]) /** @type {any[]} */ (list).splice(i, 1);
      snapshot.selected = Math.min(snapshot.selected, snapshot.rows.length - 1);
    });
  }

  /** @param {Row} row @param {string} label */
  add(row, label) {
    this.edit((now) => {
      now.rows.push([...row]);
      now.labels.push(label);
      now.on.push(true);
      now.origin.push(-1);
      now.selected = now.rows.length - 1;
    });
  }

  /** @param {number} set */
  show(set) {
    const count = this.data.sets.length;
    this.state.show(((set % count) + count) % count);
    this.say("");
    this.refresh(true);
  }

  // --- showing --------------------------------------------------------------------------------------

  /** Say something that happened; screen readers say it, too. @param {string} text */
  say(text) {
    byId("said").textContent = text;
  }

  /** Score and draw; while one pass runs, further wishes are joined into the next. @param {boolean} fresh */
  async refresh(fresh = false) {
    this.wanted++;
    this.fresh = this.fresh || fresh;
    if (this.busy) return;
    this.busy = true;
    try {
      let done = 0;
      while (done !== this.wanted) {
        done = this.wanted;
        await this.paint();
        if (done === this.wanted) await this.paintSlowly(() => done !== this.wanted);
      }
    } catch (error) {
      this.say(`The model can't score this set: ${error instanceof Error ? error.message : error}`);
    } finally {
      this.busy = false;
    }
  }

  /** What every drag shows: scores, ranks, bars. */
  async paint() {
    const { state, data } = this;
    const { now } = state;
    const start = performance.now();
    const offered = state.offered();
    const rows = offered.map((i) => now.rows[i]);
    const given = data.sets[now.set];
    if (this.fresh || !this.first) {
      [this.first] = await this.score([{ rows: given.rows, situation: given.situation }]);
      this.fresh = false;
      this.sets();
    }
    const [own] = await this.score([{ rows, situation: now.situation }]);
    const other = this.models.length > 1 ? (await this.models[1].score([{ rows, situation: now.situation }]))[0] : null;
    const places = ranks(own.scores);
    const value = (/** @type {Scored} */ one, /** @type {number} */ k) => (one.probabilities ? one.probabilities[k] : one.scores[k] - logsum(one.scores) + Math.log(one.scores.length));
    const spread = Math.max(...own.scores) - Math.min(...own.scores) || 1;
    const lowest = Math.min(...own.scores);
    const share = (/** @type {Scored} */ one, /** @type {number} */ k) => {
      if (one.probabilities) return one.probabilities[k];
      const low = Math.min(...one.scores);
      return 0.04 + 0.96 * ((one.scores[k] - low) / (Math.max(...one.scores) - low || 1));
    };
    const live = now.rows.map((_, i) => {
      const k = offered.indexOf(i);
      if (k < 0) return null;
      const before = now.origin[i] >= 0 && this.first ? value(this.first, now.origin[i]) : value(own, k);
      return { value: value(own, k), share: share(own, k), rank: places[k], change: value(own, k) - before, twin: other ? share(other, k) : null };
    });
    this.live = { own, other, offered, live };
    const strengths = live.map((one, i) => (one ? (own.probabilities ? one.value : (own.scores[offered.indexOf(i)] - lowest) / spread) : 0));
    this.picture.draw(now, strengths, now.rows.map((_, i) => this.describe(i)));
    this.table.draw(now, live);
    this.situation();
    const nothing = data.outside && own.probabilities ? 1 - own.probabilities.reduce((a, b) => a + b, 0) : null;
    byId("outside").textContent = nothing === null ? "" : `Outside option (nothing is chosen): ${percent(Math.max(0, nothing))}`;
    const winner = offered[argmax(own.scores)];
    byId("headline").textContent = `${this.name(winner)} ${data.task === "ranking" ? "is ranked first" : "is the most likely choice"} of ${offered.length}.`;
    for (const [id, there] of [["undo", state.past.length], ["redo", state.future.length]]) byId(String(id)).disabled = !there;
    byId("reset").disabled = !state.edited();
    document.body.dataset.paint = (performance.now() - start).toFixed(1);
  }

  /** What follows when nobody moves: influence, the twin, the demand curve, the map.
   * @param {() => boolean} stale */
  async paintSlowly(stale) {
    const { now } = this.state;
    const { own, offered } = this.live;
    const rows = offered.map((/** @type {number} */ i) => now.rows[i]);
    try {
      history.replaceState(null, "", this.state.toHash());
    } catch {
      // a frame of a notebook has no address of its own
    }
    if (offered.length <= LONGEST) {
      const without = await withoutEach(this.score, rows, now.situation);
      if (stale()) return;
      const matrix = without.length ? influenceMatrix(own.scores, without) : null;
      Object.assign(this.live, { without, matrix });
      this.arrows();
      drawMatrix(offered, matrix);
    } else {
      this.picture.influence(now, []);
      drawMatrix([], null);
    }
    if (this.models.length === 1 && offered.length <= LONGEST) {
      const scores = await alone(this.score, rows, now.situation);
      if (stale()) return;
      this.twin(scores);
    }
    await this.curve(stale);
    if (stale()) return;
    await this.map(stale);
    document.body.dataset.ready = String(Number(document.body.dataset.ready ?? 0) + 1);
  }

  /** Marks of what the model says of each object without its context. @param {number[]} scores */
  twin(scores) {
    const { offered, live, own } = this.live;
    const low = Math.min(...scores);
    const high = Math.max(...scores);
    const nothing = this.data.outside ? [0] : [];
    const heat = this.data.temperature ?? 1;
    const total = logsum([...scores.map((s) => s / heat), ...nothing]);
    offered.forEach((/** @type {number} */ i, /** @type {number} */ k) => {
      live[i].twin =
        own.probabilities && this.data.task === "subset" ? 1 / (1 + Math.exp(-scores[k]))
        : own.probabilities ? Math.exp(scores[k] / heat - total)
        : 0.04 + 0.96 * ((scores[k] - low) / (high - low || 1));
    });
    this.table.draw(this.state.now, live);
  }

  arrows() {
    const { now } = this.state;
    const { offered, matrix } = this.live;
    if (!matrix || !byId("show-arrows").checked) return this.picture.influence(now, []);
    const all = offered.flatMap((/** @type {number} */ i, /** @type {number} */ a) =>
      offered.map((/** @type {number} */ j, /** @type {number} */ b) => ({ from: j, to: i, by: matrix[a][b] })),
    );
    const kept = all.filter((/** @type {{by: number}} */ one) => Number.isFinite(one.by) && Math.abs(one.by) > 1e-6);
    kept.sort((/** @type {{by: number}} */ p, /** @type {{by: number}} */ q) => Math.abs(q.by) - Math.abs(p.by));
    const own = kept.filter((/** @type {{from: number, to: number}} */ one) => one.from === now.selected || one.to === now.selected);
    const rest = kept.filter((/** @type {any} */ one) => !own.includes(one));
    this.picture.influence(now, [...own.slice(0, 6), ...rest.slice(0, 4)]);
  }

  /** @param {() => boolean} stale */
  async curve(stale) {
    const { now } = this.state;
    const { data } = this;
    const k = this.live.offered.indexOf(now.selected);
    byId("curve-box").hidden = this.column < 0;
    if (this.column < 0) return;
    const column = data.columns[this.column];
    if (k < 0) {
      byId("curve").replaceChildren();
      byId("audit").textContent = "The selected object is not on offer.";
      return;
    }
    const own = now.rows.map((row) => row[this.column]).filter((v) => v !== null);
    const [low, high] = [Math.min(column.low, ...own), Math.max(column.high, ...own)];
    const values = Array.from({ length: POINTS }, (_, q) => low + (q / (POINTS - 1)) * (high - low));
    const rows = this.live.offered.map((/** @type {number} */ i) => now.rows[i]);
    const found = await demand(this.score, rows, now.situation, k, this.column, values);
    const second = this.models.length > 1 ? await demand((sets) => this.models[1].score(sets), rows, now.situation, k, this.column, values) : null;
    if (stale()) return;
    const curve = found.probabilities ?? found.scores;
    const isPrice = data.price === this.column;
    const broken = isPrice ? violations(values, curve, data.sign) : [];
    const slider = byId("curve-slider");
    if (slider !== document.activeElement) {
      Object.assign(slider, { min: String(low), max: String(high), step: String((high - low) / 200) });
      slider.value = String(now.rows[now.selected][this.column] ?? (low + high) / 2);
    }
    slider.setAttribute("aria-label", `${column.name} of ${this.name(now.selected)}`);
    drawCurve({ values, curve, twin: second ? second.probabilities ?? second.scores : null, at: now.rows[now.selected][this.column], name: column.name, object: now.selected, probability: found.probabilities !== null, broken });
    const way = data.sign < 0 ? "more raises" : "more lowers";
    byId("audit").textContent = !isPrice ? ""
      : broken.length ? `Audit: ${way} demand for ${this.name(now.selected)} from ${broken.map(([a, b]) => `${shortly(a)} to ${shortly(b)}`).join(", ")}.`
      : `Audit: demand for ${this.name(now.selected)} moves as it should over the whole range.`;
    byId("audit").className = broken.length ? "flag" : "soft";
  }

  /** @param {() => boolean} stale */
  async map(stale) {
    const { now } = this.state;
    const drawn = byId("show-map").checked && this.picture.dragged === null;
    byId("map-text").hidden = !byId("show-map").checked;
    if (!drawn) return this.picture.map(null, CELLS);
    const key = JSON.stringify([now.rows, now.on, now.situation, now.x, now.y, now.selected]);
    if (key === this.mapKey) return;
    const { offered, own } = this.live;
    const rows = offered.map((/** @type {number} */ i) => now.rows[i]);
    const [xs, ys] = [this.picture.xs, this.picture.ys];
    if (!xs || !ys) return;
    const candidates = grid(now.rows[now.selected], now.x, now.y, xs, ys, CELLS);
    const added = await withEach(this.score, rows, now.situation, candidates);
    if (stale()) return;
    this.mapKey = key;
    const before = argmax(own.scores);
    const winners = added.map((one) => {
      const winner = argmax(one.scores.slice(0, rows.length));
      return winner === before ? -1 : offered[winner];
    });
    this.picture.map(winners, CELLS);
    const share = winners.filter((w) => w >= 0).length / winners.length;
    byId("map-text").textContent = `Where a new object, like ${letter(now.selected)} in all else, would change which of the present ones is best: coloured by the new winner (${percent(share)} of the area).`;
  }

  // --- words ----------------------------------------------------------------------------------------

  /** @param {number} i @returns {string} */
  name(i) {
    const label = this.state.now.labels[i];
    return label ? `${letter(i)} (${label})` : letter(i);
  }

  /** @param {number} i @returns {string} */
  describe(i) {
    const { now } = this.state;
    const { columns } = this.data;
    const shown = [now.x, now.y].map((place) => {
      const value = now.rows[i][place];
      const column = columns[place];
      return `${column.name} ${value === null ? "missing" : column.kind === "level" ? column.levels[value] ?? "other" : shortly(value)}`;
    });
    const known = this.live.live?.[i];
    const stands = !known ? "not on offer" : `rank ${known.rank + 1}, ${this.data.temperature === null ? `utility ${signed(known.value)}` : `probability ${percent(known.value)}`}`;
    return `${this.name(i)}: ${shown.join(", ")}; ${stands}`;
  }

  // --- buttons --------------------------------------------------------------------------------------

  async decoy() {
    const { now } = this.state;
    const { offered, own } = this.live;
    const k = offered.indexOf(now.selected);
    if (k < 0 || offered.length < 2) return this.say("Select an object that is on offer beside others.");
    const rows = offered.map((/** @type {number} */ i) => now.rows[i]);
    const [xs, ys] = [this.picture.xs, this.picture.ys];
    if (!xs || !ys) return;
    const candidates = grid(now.rows[now.selected], now.x, now.y, xs, ys, CELLS);
    const found = bestDecoy(own.scores, await withEach(this.score, rows, now.situation, candidates), k);
    if (!found) return this.say(`No new object on this map helps ${this.name(now.selected)} against the others.`);
    const target = now.selected;
    const name = this.name(target);
    this.add(candidates[found.candidate], `decoy for ${letter(target)}`);
    this.state.now.selected = target;
    this.say(`Best decoy: it raises the log-odds of ${name} against the other objects by ${found.gain.toFixed(2)}.`);
    this.refresh();
  }

  enemy() {
    const { now } = this.state;
    const { offered, own, without } = this.live;
    const k = offered.indexOf(now.selected);
    if (k < 0 || !without?.length) return this.say("Select an object that is on offer beside at least two others.");
    const found = worstEnemy(own.scores, without, k);
    if (!found) return this.say(`No object on offer hurts ${this.name(now.selected)} against the rest.`);
    const enemy = offered[found.enemy];
    this.edit((snapshot) => { snapshot.on[enemy] = false; });
    this.say(`Worst enemy: without ${this.name(enemy)} the log-odds of ${this.name(now.selected)} against the rest rise by ${found.gain.toFixed(2)}. It is off now; undo puts it back.`);
  }

  async reversal() {
    const tell = (/** @type {any} */ one, /** @type {number[]} */ places) => {
      const [better, worse, third] = [one.better, one.worse, one.third].map((k) => places[k]);
      this.edit((now) => { now.on[third] = !now.on[third]; now.selected = worse; });
      this.say(`Preference reversal: with ${this.name(third)} on offer, ${this.name(better)} is better than ${this.name(worse)}; without it, the order reverses. It is off now; undo puts it back.`);
    };
    const { own, offered, without } = this.live;
    const here = without?.length ? reversals(own.scores, without) : [];
    if (here.length) return tell(here[0], offered);
    const count = this.data.sets.length;
    for (let step = 1; step <= count; step++) {
      const at = (this.state.now.set + step) % count;
      const one = this.data.sets[at];
      if (one.rows.length < 3 || one.rows.length > LONGEST) continue;
      const [whole] = await this.score([one]);
      const found = reversals(whole.scores, await withoutEach(this.score, one.rows, one.situation));
      if (!found.length) continue;
      this.state.show(at);
      this.fresh = true;
      return tell(found[0], one.rows.map((_, i) => i));
    }
    this.say("No preference reverses in any set of this page when one object is removed.");
  }

  // --- controls -------------------------------------------------------------------------------------

  controls() {
    const { data, state } = this;
    for (const [id, place] of /** @type {[string, "x" | "y"][]} */ ([["x-axis", "x"], ["y-axis", "y"]])) {
      byId(id).append(...data.columns.map((column, i) => html("option", { value: i, text: column.name })));
      byId(id).addEventListener("change", () => this.edit((now) => { now[place] = Number(byId(id).value); }));
    }
    byId("curve-column").append(...data.columns.flatMap((column, i) => (column.kind === "number" ? [html("option", { value: i, text: column.name })] : [])));
    byId("curve-column").value = String(this.column);
    byId("curve-column").addEventListener("change", () => { this.column = Number(byId("curve-column").value); this.refresh(); });
    const slider = byId("curve-slider");
    slider.addEventListener("pointerdown", () => state.keep());
    slider.addEventListener("keydown", () => state.keep());
    slider.addEventListener("input", () => this.edit((now) => { now.rows[now.selected][this.column] = Number(slider.value); }, true));
    byId("sets").append(...data.sets.map((one) => html("option", { value: one.id })));
    byId("search").addEventListener("change", () => {
      const at = data.sets.findIndex((one) => one.id === byId("search").value.trim());
      if (at < 0) return this.say(`No set of this page has the id ${byId("search").value}.`);
      this.show(at);
    });
    /** @type {Record<string, () => any>} */
    const actions = {
      previous: () => this.show(state.now.set - 1),
      next: () => this.show(state.now.set + 1),
      undo: () => state.undo() && this.refresh(true),
      redo: () => state.redo() && this.refresh(true),
      reset: () => this.show(state.now.set),
      decoy: () => this.decoy(),
      enemy: () => this.enemy(),
      reversal: () => this.reversal(),
      add: () => this.add(state.now.rows[state.now.selected], "new"),
      "save-csv": () => {
        const scores = state.now.rows.map((_, i) => { const k = this.live.offered.indexOf(i); return k < 0 ? null : this.live.own.scores[k]; });
        download(new Blob([asCsv(data, state.now, scores)], { type: "text/csv" }), "set.csv");
      },
      "save-svg": () => download(new Blob([asSvg(byId("picture"))], { type: "image/svg+xml" }), "set.svg"),
      "save-png": async () => download(await asPng(asSvg(byId("picture"))), "set.png"),
    };
    for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
    byId("show-arrows").addEventListener("change", () => this.arrows());
    byId("show-map").addEventListener("change", () => { this.mapKey = ""; this.refresh(); });
    byId("presets").append(
      ...data.presets.map((one) => html("button", { type: "button", text: one.name, onclick: () => { this.show(one.set); this.state.now.selected = one.selected; this.say(one.text); } })),
    );
    byId("presets").hidden = data.presets.length === 0;
    addEventListener("keydown", (e) => {
      if (!(e.ctrlKey || e.metaKey) || e.key.toLowerCase() !== "z" || /** @type {any} */ (e.target)?.tagName === "INPUT") return;
      e.preventDefault();
      actions[e.shiftKey ? "redo" : "undo"]();
    });
    const twin = data.models.length > 1 ? `Vertical marks: ${data.models[1]}.` : "Vertical marks: the context-ablated control, each object scored against copies of itself.";
    byId("twin-text").textContent = twin;
  }

  /** What depends on which set is shown. */
  sets() {
    const { now } = this.state;
    const { sets, left_out: left } = this.data;
    byId("search").value = "";
    byId("search").placeholder = sets[now.set].id;
    byId("where").textContent = `set ${sets[now.set].id}: ${now.set + 1} of ${sets.length}${left ? ` (${left} of the table are left out)` : ""}`;
    this.situationKey = "";
  }

  /** Inputs for the situation, and the axes that are shown. */
  situation() {
    const { now } = this.state;
    byId("x-axis").value = String(now.x);
    byId("y-axis").value = String(now.y);
    const box = byId("situation");
    box.hidden = this.data.situation.length === 0;
    const key = JSON.stringify(now.situation);
    if (key === this.situationKey || box.contains(document.activeElement)) return;
    this.situationKey = key;
    byId("situation-fields").replaceChildren(
      ...this.data.situation.map((column, k) =>
        html("label", {}, html("span", { text: column.name }), field(column, now.situation[k], column.name, (value) => this.edit((snapshot) => { snapshot.situation[k] = value; }))),
      ),
    );
  }
}

async function start() {
  const data = /** @type {PageData} */ (JSON.parse(byId("data").textContent));
  document.title = data.title;
  byId("title").textContent = data.title;
  byId("models").textContent = data.models.join(" and ");
  try {
    const explorer = new Explorer(data, await openModels(data.models.length));
    await explorer.refresh(true);
    byId("loading").hidden = true;
  } catch (error) {
    byId("loading").textContent = `The model can't run in this browser: ${error instanceof Error ? error.message : error}`;
    throw error;
  }
}

start();
