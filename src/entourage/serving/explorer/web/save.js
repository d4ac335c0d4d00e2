// Export: the edited set as CSV, the picture as SVG or PNG.

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").PageData} PageData */

/** Quote a cell. One that a spreadsheet would take for a formula gets an apostrophe.
 * @param {string | number | null} cell @returns {string} */
function quoted(cell) {
  const text = cell === null ? "" : String(cell);
  const safe = typeof cell === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

/** The set on show, as a table that `entourage predict` reads.
 * @param {PageData} data @param {Snapshot} now @param {(number | null)[]} scores @returns {string} */
export function asCsv(data, now, scores) {
  const shown = (/** @type {import("./types.js").Column} */ column, /** @type {number | null} */ value) =>
    value === null ? null : column.kind === "level" ? column.levels[value] ?? "other" : value;
  const columns = [...data.columns, ...data.situation];
  const lines = [["set", "object", ...columns.map((one) => one.name), "on_offer", "score"]];
  now.rows.forEach((row, i) => {
    const cells = [...data.columns.map((one, k) => shown(one, row[k])), ...data.situation.map((one, k) => shown(one, now.situation[k]))];
    lines.push([data.sets[now.set].id, now.labels[i], ...cells, now.on[i] ? 1 : 0, scores[i]].map((v) => /** @type {any} */ (v)));
  });
  return lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n";
}

/** The picture with its styles, as a file of its own.
 * @param {SVGElement} picture @returns {string} */
export function asSvg(picture) {
  const copy = /** @type {SVGElement} */ (picture.cloneNode(true));
  const [from, to] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
  const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "fill-opacity", "opacity", "font", "text-anchor"];
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    to[i].setAttribute("style", kept.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    to[i].removeAttribute("tabindex");
  });
  const [, , width, height] = (picture.getAttribute("viewBox") ?? "0 0 640 460").split(" ");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("style", `background:${getComputedStyle(document.body).backgroundColor}`);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {string} text @returns {Promise<Blob>} */
export async function asPng(text) {
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.naturalWidth || 1280, 2 * image.naturalHeight || 920];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture")))));
}

/** @param {Blob} content @param {string} name */
export function download(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
