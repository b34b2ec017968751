// Starts the page: language and theme first, so that even a failure can be read; then the library; then the chain.

import { App } from "./app.js";
import { byId, html } from "./dom.js";
import { loadLibrary } from "./engine.js";
import { catalogues, currentLanguage, setLanguage, t } from "./i18n/index.js";
import { remember, remembered } from "./storage.js";
import { currentTheme, restoreTheme, toggleTheme } from "./theme.js";

const query = new URLSearchParams(location.search);

/** @param {() => void} redraw */
function setUpTools(redraw) {
  byId("language").addEventListener("click", () => {
    setLanguage(currentLanguage() === "zh" ? "en" : "zh");
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
  setLanguage(query.get("lang") ?? remembered("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  /** @type {App | null} */
  let app = null;
  const redraw = () => {
    drawTools();
    app?.drawAll();
  };
  setUpTools(redraw);
  drawTools();
  try {
    const { library, build } = await loadLibrary();
    byId("status").hidden = true;
    byId("content").hidden = false;
    app = new App(library, build, query.get("preset") ?? "one-plus-one");
    redraw();
    byId("main").setAttribute("aria-busy", "false");
  } catch (error) {
    fail(error);
  }
}

start();
