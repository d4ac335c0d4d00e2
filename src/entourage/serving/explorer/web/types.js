// What the page is made of. Only types: nothing here runs.

/**
 * A column of the objects or of the situation. A level is kept as its place among the levels, -1 for another text;
 * its low is -1 where there are such.
 * @typedef {{name: string, kind: "number" | "flag" | "level", levels: string[], low: number, high: number}} Column
 */

/**
 * A choice set of the table: one row of numbers an object, null where a value is missing.
 * @typedef {{id: string, rows: Row[], labels: string[], situation: Row}} GivenSet
 */

/** @typedef {(number | null)[]} Row */

/**
 * What Python wrote into the page. Scores over the temperature are those of a softmax; null where there are no
 * probabilities.
 * @typedef {{title: string, task: "choice" | "ranking" | "subset", outside: boolean, temperature: number | null, columns: Column[],
 *   situation: Column[], sets: GivenSet[], left_out: number, models: string[], x: number, y: number,
 *   price: number | null, sign: number, presets: {name: string, set: number, selected: number, text: string}[]}} PageData
 */

/**
 * The set on show, as it is edited; origin is the place of each object in the set of the table, -1 for a new one.
 * @typedef {{set: number, rows: Row[], labels: string[], on: boolean[], origin: number[], situation: Row, x: number, y: number,
 *   selected: number}} Snapshot
 */

/** @typedef {{rows: Row[], situation: Row}} SetToScore */
/** @typedef {{scores: number[], probabilities: number[] | null}} Scored */
/** @typedef {(sets: SetToScore[]) => Promise<Scored[]>} Score */

export {};
