// The explorer: state, models and views put together.

import { hashOf, takeHash } from "./address.js";
import { analyseControl, analyseDemand, analyseInfluence, analyseMap, sayGap } from "./analyses.js";
import { Frame } from "./axes.js";
import { withoutContext } from "./control.js";
import { connect } from "./controls.js";
import { byId, write } from "./dom.js";
import { judge } from "./judge.js";
import { drawControls } from "./labels.js";
import { drawMatrix } from "./matrix.js";
import { Picture } from "./picture.js";
import { STALE, inPieces } from "./pieces.js";
import { Situation } from "./situation.js";
import { State } from "./state.js";
import { ObjectTable } from "./table.js";
import { describe, gainsAndLosses, headline, nameOf } from "./words.js";

/** @typedef {import("./types.js").Live} Live */
/** @typedef {import("./types.js").Judged} Judged */
/** @typedef {import("./types.js").PageData} PageData */
/** @typedef {import("./types.js").SetToScore} SetToScore */
/** @typedef {import("./types.js").Snapshot} Snapshot */

const QUICK = 10; // milliseconds: a control that takes no longer is drawn with each move

const MANY = 10; // objects on offer: the matrix takes a row of its own

const HINT = "Select an object by a click or the Tab key. Arrow keys move it, space takes it off the offer.";

export class Explorer {
  /** @param {PageData} data */
  constructor(data) {
    this.data = data;
    this.state = new State(data);
    /** @type {import("./runtime.js").Model[]} */
    this.models = [];
    /** @type {Live | null} */
    this.live = null;
    /** @type {Judged | null} */
    this.first = null; // of the table's own set, for changes
    /** @type {[number, number]} */
    this.curveRange = [0, 1];
    this.controlTook = Infinity;
    this.wanted = 0;
    this.asked = 0;
    this.at = 0;
    /** @type {string | null} */
    this.shownBeside = null;
    this.fresh = true;
    /** @type {Promise<void> | null} */
    this.running = null;
    this.frame = new Frame(data);
    /** @type {import("./picture.js").Actions} */
    const actions = {
      select: (i) => this.select(i),
      begin: () => this.state.keep(),
      move: (i, x, y) => this.move(i, x, y),
      end: () => this.refresh(),
      toggle: (i) => this.working(this.toggle(i)),
    };
    if (location.hash.length > 1) takeHash(this.state, location.hash);
    document.body.dataset.beside = this.state.view.beside;
    this.pictures = { own: new Picture(byId("picture"), this.frame, actions), beside: new Picture(byId("picture-beside"), this.frame, actions) };
    this.table = new ObjectTable(data, {
      edit: (i, place, value) => this.edit((now) => (now.rows[i][place] = value)),
      toggle: (i) => this.working(this.toggle(i)),
      select: (i) => this.select(i),
      drop: (i) => this.drop(i),
      refused: (text) => this.say(text),
    });
    this.situation = new Situation(data, (place, value, joined) => this.edit((now) => (now.situation[place] = value), joined), (text) => this.say(text));
    byId("curve-box").hidden = this.state.view.column < 0;
    connect(this);
    this.say("");
    addEventListener("hashchange", () => {
      if (location.hash !== hashOf(this.state) && takeHash(this.state, location.hash)) this.refresh(true);
    });
  }

  /** @param {SetToScore[]} sets */
  score = (sets) => this.models[0].score(sets);
  /** @param {SetToScore[]} sets */
  other = (sets) => this.models[this.models.length - 1].score(sets);

  // --- what people do -------------------------------------------------------------------------------

  /** @param {(now: Snapshot) => void} change @param {boolean} joined */
  edit(change, joined = false) {
    this.state.change(change, joined);
    this.refresh();
  }

  /** @param {number} i @param {number | null} x @param {number | null} y */
  move(i, x, y) {
    this.edit((now) => {
      if (x !== null) now.rows[i][now.x] = x;
      if (y !== null) now.rows[i][now.y] = y;
    }, true);
  }

  /** @param {number} i */
  select(i) {
    if (this.state.now.selected === i) return;
    this.state.now.selected = i;
    this.refresh();
  }

  /** Take an object off the offer, or put it back, and say who gains and who loses. @param {number} i */
  async toggle(i) {
    const { now } = this.state;
    if (now.on[i] && now.on.filter(Boolean).length === 1) {
      this.draw();
      return this.say("One object must stay on offer.");
    }
    const before = this.live;
    this.state.change((next) => (next.on[i] = !next.on[i]));
    const after = await this.settled();
    if (!after || !before || !after.own.valid || !before.own.valid) return;
    const both = after.offered.filter((k) => before.offered.includes(k));
    const value = (/** @type {Live} */ live, /** @type {number} */ k) => live.own.values[live.offered.indexOf(k)];
    const told = gainsAndLosses(after.own, both, both.map((k) => value(after, k) - value(before, k)));
    this.say(`${now.on[i] ? "With" : "Without"} ${nameOf(now, i)}: ${told}`);
  }

  /** @param {number} i */
  drop(i) {
    if (this.state.now.on.filter((on, k) => on && k !== i).length === 0) return this.say("One object must stay on offer.");
    this.say(`${nameOf(this.state.now, i)} is removed; undo puts it back.`);
    this.state.drop(i);
    this.refresh();
  }

  /** @param {number | null} set one of the table, as it is; null for that of the state */
  show(set) {
    const count = this.data.sets.length;
    if (set !== null) this.state.show(((set % count) + count) % count);
    this.say(""); // what was said is of another set
    this.refresh(true);
  }

  // --- showing --------------------------------------------------------------------------------------

  /** Say something that happened; screen readers say it, too. @param {string} text @param {number | null} value */
  say(text, value = null) {
    byId("said").textContent = text || HINT;
    byId("said").classList.toggle("soft", !text);
    byId("said").dataset.value = value === null ? "" : String(value);
  }

  /** What a result belongs to. @returns {string} */
  keyOfSet() {
    const { set, rows, on, situation } = this.state.now;
    return JSON.stringify([set, rows, on, situation]);
  }

  /** @returns {string} */
  besideName() {
    return this.state.view.beside === "model" ? this.data.models[1] : "context-ablated control";
  }

  shownPictures() {
    const [own, beside] = [this.pictures.own.root, this.pictures.beside.root];
    return [{ picture: own, title: this.data.models[0] }, ...(this.state.view.beside ? [{ picture: beside, title: this.besideName() }] : [])];
  }

  /** Score and draw; while one pass runs, further wishes are joined into the next. @param {boolean} fresh */
  refresh(fresh = false) {
    this.wanted++;
    this.fresh = this.fresh || fresh;
    this.asked = performance.now();
    const known = JSON.stringify(this.state.offered());
    if (fresh || (this.live && JSON.stringify(this.live.offered) !== known)) this.live = null;
    this.draw();
    if (!this.models.length) return Promise.resolve();
    this.running ??= this.working(this.passes().finally(() => (this.running = null)));
    return this.running;
  }

  /** Note on the page that work is under way. @template T @param {Promise<T>} work @returns {Promise<T>} */
  working(work) {
    this.at++;
    document.body.dataset.busy = "";
    return work.finally(() => {
      if (--this.at === 0) delete document.body.dataset.busy;
    });
  }

  /** What is known once everything asked for is done. @returns {Promise<Live | null>} */
  async settled() {
    await this.refresh();
    return this.live;
  }

  async passes() {
    let done = 0;
    while (done !== this.wanted) {
      done = this.wanted;
      try {
        await this.pass(() => done !== this.wanted);
      } catch (error) {
        if (error === STALE) continue;
        this.say(`The model can't score this set: ${error instanceof Error ? error.message : error}`);
      }
    }
  }

  /** @param {() => boolean} stale */
  async pass(stale) {
    const { now } = this.state;
    const live = await this.scored();
    if (stale()) throw STALE;
    const rows = live.offered.map((i) => now.rows[i]);
    const [score, other] = [inPieces(this.score, stale), inPieces(this.other, stale)];
    const start = performance.now();
    await analyseControl(this, live, rows, score);
    if (this.controlTook === Infinity && live.beside) this.controlTook = performance.now() - start;
    sayGap(this, live);
    await analyseInfluence(this, live, rows, score, other);
    await analyseDemand(this, live, rows, score, other);
    await analyseMap(this, live, rows, score);
    try {
      history.replaceState(null, "", hashOf(this.state));
    } catch {
      // a frame of a notebook has no address of its own
    }
    document.body.dataset.ready = String(Number(document.body.dataset.ready ?? 0) + 1);
  }

  /** What every move shows: scores, ranks, bars. @returns {Promise<Live>} */
  async scored() {
    const { state, data } = this;
    const { now, view } = state;
    const given = data.sets[now.set];
    if (this.fresh || !this.first) {
      this.first = judge(data, 0, (await this.score([given]))[0]);
      this.fresh = false;
      this.controlTook = Infinity;
    }
    const offered = state.offered();
    const rows = offered.map((i) => now.rows[i]);
    const set = { rows, situation: now.situation };
    const own = judge(data, 0, (await this.score([set]))[0]);
    /** @type {Judged | null} */
    let beside = null;
    if (view.beside === "model") beside = judge(data, 1, (await this.other([set]))[0]);
    if (view.beside === "control" && this.controlTook < QUICK) {
      const start = performance.now();
      beside = judge(data, 0, await withoutContext(data, this.score, rows, now.situation));
      this.controlTook = performance.now() - start;
    }
    const last = this.live;
    this.live = { offered, first: this.first, own, beside, without: [], matrix: null, besideMatrix: null };
    this.draw(beside ?? (view.beside === "control" ? (last?.beside ?? null) : null));
    document.body.dataset.paint = (performance.now() - this.asked).toFixed(1);
    return this.live;
  }

  /** Draw the set, with what is known of it. @param {Judged | null} beside what is shown at the side until it is scored */
  draw(beside = this.live?.beside ?? null) {
    const { data, state, frame } = this;
    const { now, view } = state;
    const live = this.live ? { ...this.live, beside } : null;
    document.body.dataset.beside = view.beside;
    document.body.toggleAttribute("data-many", state.offered().length > MANY);
    frame.fit(now);
    for (const which of /** @type {("own" | "beside")[]} */ (["own", "beside"])) {
      const judged = live?.[which];
      const strengths = now.rows.map((_, i) => (judged?.valid && live && now.on[i] ? (judged.shares[live.offered.indexOf(i)] ?? null) : null));
      this.pictures[which].draw(now, strengths, now.rows.map((_, i) => describe(data, now, i, live, which)));
    }
    this.table.draw(now, live, view.beside);
    this.situation.draw(now);
    write(byId("headline"), live ? headline(data, now, live) : this.models.length ? "" : "Loading the model …");
    drawControls(this);
    if (!live) drawMatrix(now, state.offered(), null, 1);
  }
}
