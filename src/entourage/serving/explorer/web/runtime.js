// The model in the page: ONNX in WebAssembly, one thread, nothing fetched.

/** @typedef {import("./types.js").SetToScore} SetToScore */
/** @typedef {import("./types.js").Scored} Scored */

/** Read what Python put into an element: gzip, as base64.
 * @param {string} id @returns {Promise<Uint8Array<ArrayBuffer>>} */
export async function embedded(id) {
  const text = document.getElementById(id)?.textContent ?? "";
  const bytes = decoded(text.trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {string} text in base64 @returns {Uint8Array<ArrayBuffer>} */
function decoded(text) {
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** Open all models of the page.
 * @param {number} count @returns {Promise<Model[]>} */
export async function openModels(count) {
  const code = new Blob([await embedded("ort")], { type: "text/javascript" });
  const address = URL.createObjectURL(code);
  const ort = await import(address);
  URL.revokeObjectURL(address);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = (await embedded("wasm")).buffer;
  const models = [];
  for (let i = 0; i < count; i++) {
    const session = await ort.InferenceSession.create(await embedded(`model-${i}`), { executionProviders: ["wasm"] });
    models.push(new Model(ort, session));
  }
  return models;
}

/** A model that scores sets. One call at a time: a session can't run twice at once. */
export class Model {
  /** @param {any} ort @param {any} session */
  constructor(ort, session) {
    this.ort = ort;
    this.session = session;
    /** @type {Promise<any>} */
    this.last = Promise.resolve();
  }

  /** Score sets of any sizes in one pass.
   * @param {SetToScore[]} sets @returns {Promise<Scored[]>} */
  score(sets) {
    const next = this.last.then(() => this.run(sets));
    this.last = next.catch(() => undefined);
    return next;
  }

  /** @param {SetToScore[]} sets @returns {Promise<Scored[]>} */
  async run(sets) {
    if (sets.length === 0) return [];
    const n = sets.length;
    const m = Math.max(...sets.map((one) => one.rows.length));
    const d = sets[0].rows[0].length;
    const objects = new Float64Array(n * m * d);
    const mask = new Uint8Array(n * m);
    sets.forEach((one, i) => {
      one.rows.forEach((row, j) => {
        mask[i * m + j] = 1;
        row.forEach((value, k) => (objects[(i * m + j) * d + k] = value ?? NaN));
      });
    });
    /** @type {Record<string, any>} */
    const feeds = {
      objects: new this.ort.Tensor("float64", objects, [n, m, d]),
      mask: new this.ort.Tensor("bool", mask, [n, m]),
    };
    if (this.session.inputNames.includes("situation")) {
      const s = sets[0].situation.length;
      const values = Float64Array.from(sets.flatMap((one) => one.situation.map((v) => v ?? NaN)));
      feeds.situation = new this.ort.Tensor("float64", values, [n, s]);
    }
    const found = await this.session.run(feeds);
    const cut = (/** @type {any} */ tensor) =>
      sets.map((one, i) => Array.from(tensor.data.slice(i * m, i * m + one.rows.length), Number));
    const scores = cut(found.scores);
    const probabilities = found.probabilities ? cut(found.probabilities) : null;
    return sets.map((_, i) => ({ scores: scores[i], probabilities: probabilities ? probabilities[i] : null }));
  }
}
