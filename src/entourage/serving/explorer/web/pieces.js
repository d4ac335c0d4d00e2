// Long work in small pieces, so that a drag never waits for it.

/** @typedef {import("./types.js").Score} Score */

/** Thrown where a result is no longer wanted. */
export const STALE = Symbol("stale");
const SHORT = 4; // milliseconds: larger pieces are tried
const LONG = 9; // milliseconds: smaller ones

/** Let the browser paint and take input. @returns {Promise<void>} */
export function pause() {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(null);
  });
}

/** A way to score sets a few at a time, which stops where the result is no longer wanted.
 * @param {Score} score @param {() => boolean} stale @returns {Score} */
export function inPieces(score, stale) {
  let step = 1;
  return async (sets) => {
    const found = [];
    for (let at = 0; at < sets.length; ) {
      if (stale()) throw STALE;
      const start = performance.now();
      const some = sets.slice(at, at + step);
      found.push(...(await score(some)));
      at += some.length;
      const took = performance.now() - start;
      if (took < SHORT) step *= 2;
      else if (took > LONG) step = Math.max(1, Math.floor(step / 2));
      await pause();
    }
    if (stale()) throw STALE;
    return found;
  };
}
