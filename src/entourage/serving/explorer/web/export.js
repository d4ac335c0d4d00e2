// The picture as a file of its own, SVG or PNG.

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "fill-opacity", "opacity", "font", "text-anchor", "r"];

/** Pictures side by side, with their styles and a title each.
 * @param {{picture: SVGElement, title: string}[]} shown @returns {string} */
export function asSvg(shown) {
  const style = getComputedStyle(document.body);
  const [paper, ink] = [getComputedStyle(shown[0].picture).getPropertyValue("--card") || style.backgroundColor, style.color];
  const top = 30;
  let left = 0;
  let height = 0;
  const parts = shown.map(({ picture, title }) => {
    const [width, tall] = [picture.clientWidth || 560, picture.clientHeight || 400];
    const copy = styled(picture);
    copy.setAttribute("x", String(left));
    copy.setAttribute("y", String(top));
    copy.setAttribute("width", String(width));
    copy.setAttribute("height", String(tall));
    const name = document.createElementNS("http://www.w3.org/2000/svg", "text");
    name.textContent = title;
    for (const [key, value] of Object.entries({ x: left + 16, y: 22, fill: ink, style: "font:600 15px system-ui,sans-serif" })) name.setAttribute(key, String(value));
    left += width;
    height = Math.max(height, tall + top);
    return [name, copy];
  });
  const all = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width: left, height, viewBox: `0 0 ${left} ${height}`, style: `background:${paper}` })) all.setAttribute(key, String(value));
  all.append(...parts.flat());
  return new XMLSerializer().serializeToString(all);
}

/** A copy that needs no style sheet. @param {SVGElement} picture @returns {SVGElement} */
function styled(picture) {
  const copy = /** @type {SVGElement} */ (picture.cloneNode(true));
  const [from, to] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    to[i].setAttribute("style", KEPT.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    for (const name of ["tabindex", "role", "aria-pressed"]) to[i].removeAttribute(name);
  });
  for (const name of ["id", "class", "role", "aria-label", "aria-describedby"]) copy.removeAttribute(name);
  return copy;
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
