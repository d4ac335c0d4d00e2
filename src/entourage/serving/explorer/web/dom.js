// Elements. Text is set as text, never as markup, so that no name in a table can run a script.

const SVG = "http://www.w3.org/2000/svg";

/** Colours that people with colour-blindness tell apart (Okabe and Ito); letters name objects besides. */
export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d00", "#7f7f7f"];

/** @param {number} i @returns {string} */
export function colour(i) {
  return COLOURS[i % COLOURS.length];
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
