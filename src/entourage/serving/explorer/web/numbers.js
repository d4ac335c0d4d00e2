// Numbers: formats, ticks, and the few sums that scores need.

/** Letters of objects: A to Z, then A2, B2 and so on.
 * @param {number} i @returns {string} */
export function letter(i) {
  return String.fromCharCode(65 + (i % 26)) + (i < 26 ? "" : String(1 + Math.floor(i / 26)));
}

/** A number in at most four significant digits, without needless zeros.
 * @param {number | null} value @returns {string} */
export function shortly(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) {
    const [digits, power] = value.toExponential(2).split("e");
    return `${Number(digits)}e${Number(power)}`.replaceAll("-", "−");
  }
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(Math.abs(value), 1))));
  return String(Number(value.toFixed(Math.min(digits, 4)))).replace("-", "−");
}

/** A number with as many digits as its column needs: values that differ by a thousandth of its range differ here.
 * @param {number} value @param {number} low @param {number} high @returns {string} */
export function exactly(value, low, high) {
  const size = Math.max(Math.abs(low), Math.abs(high), Math.abs(value));
  const needed = high > low && size > 0 ? Math.ceil(Math.log10(size / (high - low))) + 4 : 5;
  const digits = clamp(Number.isFinite(needed) ? needed : 5, 5, 17);
  return String(Number(value.toPrecision(digits)));
}

/** A number with a sign and fixed decimals, so that columns align.
 * @param {number} value @param {number} decimals @returns {string} */
export function signed(value, decimals = 2) {
  const text = Math.abs(value).toFixed(decimals);
  return (Number(text) === 0 ? "" : value < 0 ? "−" : "+") + text;
}

/** Decimals of utilities that differ by so much within a set: null where a power of ten is needed.
 * @param {number} spread @returns {number | null} */
function decimalsOf(spread) {
  if (!(spread > 0) || (spread >= 0.1 && spread < 1e5)) return 2;
  return spread >= 1e-3 && spread < 0.1 ? 1 - Math.floor(Math.log10(spread)) : null;
}

/** A utility with a sign, in digits that tell those of a set apart.
 * @param {number} value @param {number} spread of the utilities in the set @returns {string} */
export function utility(value, spread) {
  const decimals = decimalsOf(spread);
  if (decimals !== null) return signed(value, decimals);
  if (Math.abs(value) < leastOf(spread)) return "0";
  return (value < 0 ? "−" : "+") + Math.abs(value).toExponential(2).replace("e+", "e").replace("e-", "e−");
}

/** The least difference of utilities that is said. @param {number} spread @returns {number} */
export function leastOf(spread) {
  const decimals = decimalsOf(spread);
  return decimals === null ? 0.005 * spread : 0.5 * 10 ** -decimals;
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

/** Round values that cut a range into about so many parts.
 * @param {number} low @param {number} high @param {number} parts @returns {number[]} */
export function ticks(low, high, parts = 5) {
  const raw = (high - low) / parts;
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw * (1 - 1e-9)) ?? raw;
  /** @type {number[]} */
  const found = [];
  const first = Math.ceil(low / step - 1e-9);
  for (let k = 0; k <= 2 * parts + 2 && (first + k) * step <= high + 1e-9 * step; k++) {
    const value = (first + k) * step;
    if (!found.includes(value)) found.push(value);
  }
  return found.length ? found : [low];
}

/** Texts of ticks. Where they differ too little for short ones, they count from the first, the offset.
 * @param {number[]} values @returns {{texts: string[], offset: number | null}} */
export function tickTexts(values) {
  const texts = values.map(shortly);
  if (new Set(texts).size === values.length) return { texts, offset: null };
  return { texts: values.map((v) => (v === values[0] ? "0" : "+" + shortly(v - values[0]))), offset: values[0] };
}

/** Log of the sum of exponentials.
 * @param {number[]} values @returns {number} */
export function logsum(values) {
  const highest = Math.max(...values);
  if (!Number.isFinite(highest)) return highest;
  return highest + Math.log(values.reduce((sum, v) => sum + Math.exp(v - highest), 0));
}

/** @param {number[]} values @returns {number} */
export function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
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
