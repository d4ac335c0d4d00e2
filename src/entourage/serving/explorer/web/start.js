// The start of the page.

import { byId, write } from "./dom.js";
import { Explorer } from "./main.js";
import { openModels } from "./runtime.js";

/** @typedef {import("./types.js").PageData} PageData */

/** The set is drawn at once; the model follows when it is loaded. */
async function start() {
  const data = /** @type {PageData} */ (JSON.parse(byId("data").textContent));
  document.title = data.title;
  byId("title").textContent = data.title;
  byId("models").textContent = data.models.join(" and ");
  byId("h-own").textContent = data.models[0];
  const page = new Explorer(data);
  try {
    page.draw();
  } finally {
    document.body.classList.remove("unfilled");
  }
  requestAnimationFrame(() => setTimeout(() => performance.mark("set painted")));
  try {
    if (document.readyState === "loading") await new Promise((resolve) => addEventListener("DOMContentLoaded", resolve));
    await new Promise((resolve) => setTimeout(resolve)); // the set is painted first
    page.models = await openModels(data.models.length);
    performance.mark("model ready");
    await page.refresh(true);
  } catch (error) {
    write(byId("headline"), `The model can't run in this browser: ${error instanceof Error ? error.message : error}`);
    throw error;
  }
}

start();
