// Elements. Text is set as text, never as markup, so that no name in a table can run a script.

const SVG = "http://www.w3.org/2000/svg";

/** Colours that people with colour-blindness tell apart (Okabe and Ito), each with the ink that is read on it; letters
 * name objects besides. */
const COLOURS = [
  ["#0072b2", "#fff"],
  ["#d55e00", "#111"],
  ["#009e73", "#111"],
  ["#cc79a7", "#111"],
  ["#e69f00", "#111"],
  ["#56b4e9", "#111"],
  ["#8c6d00", "#fff"],
  ["#8f8f8f", "#111"],
];

/** @param {number} i @returns {string} */
export function colour(i) {
  return COLOURS[i % COLOURS.length][0];
}

/** What is read on that colour. @param {number} i @returns {string} */
export function ink(i) {
  return COLOURS[i % COLOURS.length][1];
}

/** @param {Element} element @param {Record<string, any>} attributes */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = String(value);
    else if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (value === false || value === null || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Make an HTML element.
 * @param {string} tag @param {Record<string, any>} attributes @param {(Node | string)[]} children
 * @returns {HTMLElement} */
export function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  set(made, attributes);
  made.append(...children);
  return made;
}

/** Make an SVG element.
 * @param {string} tag @param {Record<string, any>} attributes @param {Node[]} children @returns {SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  const made = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  set(made, attributes);
  made.append(...children);
  return made;
}

/** An element of the page, which must be there.
 * @param {string} id @returns {any} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
}

/** Set a text only where it is another: screen readers say a changed one. @param {Element} element @param {string} text */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
