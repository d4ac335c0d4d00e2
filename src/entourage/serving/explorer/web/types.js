// What the page is made of. Only types: nothing here runs.

/**
 * What an economic audit moves a column by, as in entourage.decisions.audit.
 * @typedef {{low: number, high: number, step: number, spread: number, indicator: boolean}} AuditRange
 */

/**
 * A column of the objects or of the situation. A level is kept as its place among the levels, -1 for another text;
 * its low is -1 where there are such. Numbers that are all whole stay so when objects are dragged.
 * @typedef {{name: string, kind: "number" | "flag" | "level", levels: string[], low: number, high: number,
 *   audited: AuditRange | null, whole: boolean}} Column
 */

/** @typedef {(number | null)[]} Row */

/**
 * A choice set of the table: one row of numbers an object, null where a value is missing.
 * @typedef {{id: string, left_out: number, rows: Row[], labels: string[], situation: Row}} GivenSet
 */

/**
 * What Python wrote into the page. Of each model: whether it has an outside option, and the temperature; scores over it are those
 * of a softmax, and null says that there are no probabilities. Control: whether the model says something of an object among copies of itself.
 * @typedef {{title: string, task: "choice" | "ranking" | "subset", outsides: boolean[], temperatures: (number | null)[], columns: Column[],
 *   situation: Column[], sets: GivenSet[], left_out: number, models: string[], x: number, y: number,
 *   price: number | null, sign: number, steps: number, tolerance: number, control: boolean,
 *   set_column: string | null, label_column: string | null,
 *   presets: {name: string, set: number, selected: number, text: string}[]}} PageData
 */

/**
 * The set on show, as it is edited; origin is the place of each object in the set of the table, -1 for a new one.
 * @typedef {{set: number, rows: Row[], labels: string[], on: boolean[], origin: number[], situation: Row, x: number, y: number,
 *   selected: number}} Snapshot
 */

/**
 * What is shown of it; undo leaves it. Beside: what stands at the side of the model.
 * @typedef {{beside: "model" | "control" | "", arrows: boolean, map: boolean, column: number}} View
 */

/** What numbers are said in: probabilities, or utilities with so large a range. @typedef {{probabilities: boolean, spread: number}} Scale */

/** @typedef {{rows: Row[], situation: Row}} SetToScore */
/** @typedef {{scores: number[], probabilities: number[] | null}} Scored */
/** @typedef {(sets: SetToScore[]) => Promise<Scored[]>} Score */

/**
 * What a model says of the objects on offer, in their order. Values are probabilities, or utilities less their mean;
 * shares are the lengths of bars; nothing is the probability of the outside option; spread is the range of the scores.
 * @typedef {{scores: number[], values: number[], shares: number[], ranks: number[], nothing: number | null,
 *   probabilities: boolean, spread: number, valid: boolean}} Judged
 */

/**
 * All that is known of the set on show.
 * @typedef {{offered: number[], first: Judged | null, own: Judged, beside: Judged | null, without: Scored[],
 *   matrix: number[][] | null, besideMatrix: number[][] | null}} Live
 */

/** @typedef {{from: number, to: number, by: number}} Arrow */

export {};
