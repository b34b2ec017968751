// Starts the page: language and theme first, so that even a failure can be read; then the library; then the pages.

import { loadLibrary } from "./engine.js";
import { catalogues, currentLanguage, setLanguage, t } from "./i18n/index.js";
import { byId, html } from "./parts/dom.js";
import { remember, remembered } from "./parts/storage.js";
import { currentTheme, restoreTheme, toggleTheme } from "./parts/theme.js";
import { Shell } from "./shell.js";

const query = new URLSearchParams(location.search);

/** @param {() => void} redraw */
function setUpTools(redraw) {
  byId("language").addEventListener("click", async () => {
    await setLanguage(currentLanguage() === "zh" ? "en" : "zh");
    remember("language", currentLanguage());
    redraw();
  });
  byId("theme").addEventListener("click", () => {
    toggleTheme();
    drawTools();
  });
}

function drawTools() {
  document.title = t("page.title");
  for (const element of document.querySelectorAll("[data-i18n]")) {
    element.textContent = t(/** @type {HTMLElement} */ (element).dataset.i18n ?? "");
  }
  byId("undo").textContent = t("tool.undo");
  byId("redo").textContent = t("tool.redo");
  const language = byId("language");
  language.textContent = t("tool.language");
  language.setAttribute("aria-label", t("tool.languageLabel"));
  byId("theme").textContent = t(currentTheme() === "dark" ? "tool.theme.light" : "tool.theme.dark");
}

/** @param {unknown} error */
function fail(error) {
  const reason = error instanceof Error ? error.message : String(error);
  // the reader's language may be the wrong guess, so a failure speaks both
  const texts = Object.entries(catalogues).map(([language, texts]) => html("p", { lang: language }, texts["page.failed"].replace("{reason}", reason)));
  const status = byId("status");
  const alert = html("div", { class: "status failed", role: "alert", id: "status" }, ...texts);
  status.replaceWith(alert);
  byId("content").hidden = true;
  byId("main").setAttribute("aria-busy", "false");
}

async function start() {
  restoreTheme();
  await setLanguage(query.get("lang") ?? remembered("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  /** @type {Shell | null} */
  let shell = null;
  let build = "";
  const redraw = () => {
    drawTools();
    if (build !== "") byId("foot").replaceChildren(html("p", {}, t("page.foot", { build: t(`page.build.${build}`) })));
    shell?.redraw();
  };
  setUpTools(redraw);
  drawTools();
  try {
    const loaded = await loadLibrary();
    build = loaded.build;
    shell = new Shell(loaded.library);
    await shell.open(query.get("page") ?? "chain");
    redraw();
  } catch (error) {
    fail(error);
  }
}

start();
