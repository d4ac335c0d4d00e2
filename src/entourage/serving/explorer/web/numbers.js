// Numbers: formats, scales, and the softmax of utilities.

/** Letters of objects: A to Z, then A2, B2 and so on.
 * @param {number} i @returns {string} */
export function letter(i) {
  return String.fromCharCode(65 + (i % 26)) + (i < 26 ? "" : String(1 + Math.floor(i / 26)));
}

/** A number in at most four significant digits, without needless zeros.
 * @param {number | null} value @returns {string} */
export function shortly(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential(2).replace("-", "−");
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(Math.abs(value), 1))));
  return String(Number(value.toFixed(Math.min(digits, 4)))).replace("-", "−");
}

/** A number with a sign and fixed decimals, so that columns align.
 * @param {number} value @param {number} decimals @returns {string} */
export function signed(value, decimals = 2) {
  const text = Math.abs(value).toFixed(decimals);
  return (Number(text) === 0 ? " " : value < 0 ? "−" : "+") + text;
}

/** A probability in percent.
 * @param {number} p @returns {string} */
export function percent(p) {
  return (100 * p).toFixed(1) + " %";
}

/** @param {number} value @param {number} low @param {number} high @returns {number} */
export function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/** A round step that cuts a range into about so many parts.
 * @param {number} low @param {number} high @param {number} parts @returns {number[]} */
export function ticks(low, high, parts = 5) {
  const raw = (high - low) / parts;
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw) ?? raw;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

/** Log of the sum of exponentials.
 * @param {number[]} values @returns {number} */
export function logsum(values) {
  const highest = Math.max(...values);
  if (!Number.isFinite(highest)) return highest;
  return highest + Math.log(values.reduce((sum, v) => sum + Math.exp(v - highest), 0));
}

/** Ranks, 0 = best; equal scores share the better rank.
 * @param {number[]} scores @returns {number[]} */
export function ranks(scores) {
  return scores.map((s) => scores.filter((other) => other > s).length);
}

/** The place of the largest value.
 * @param {number[]} values @returns {number} */
export function argmax(values) {
  return values.reduce((best, v, i) => (v > values[best] ? i : best), 0);
}
