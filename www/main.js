// Starts the page: language and theme first, so that even a failure can be read; then the library; then the pages.

import { loadLibrary, loadStart } from "./engine.js";
import { addTexts, catalogues, currentLanguage, setLanguage, t } from "./i18n/index.js";
import { pages } from "./pages.js";
import { breakFormulas } from "./parts/break-math.js";
import { byId, html } from "./parts/dom.js";
import { remember, remembered } from "./parts/storage.js";
import { currentTheme, restoreTheme, toggleTheme } from "./parts/theme.js";
import { Address, fromAddress, linkTo } from "./share/address.js";
import { drawNotice, hideNotice, showNotice } from "./share/notice.js";
import { keepOffline } from "./share/offline.js";
import { SharePanel } from "./share/panel.js";
import { Shell } from "./shell.js";

/** @typedef {Awaited<ReturnType<typeof fromAddress>>} Found */

const query = new URLSearchParams(location.search);
const embedded = query.get("embed") === "1";

/**
 * @param {() => void} redraw
 * @param {() => void} enter goes to the content
 */
function setUpTools(redraw, enter) {
  byId("language").addEventListener("click", async () => {
    await setLanguage(currentLanguage() === "zh" ? "en" : "zh");
    remember("language", currentLanguage());
    redraw();
  });
  byId("theme").addEventListener("click", () => {
    toggleTheme();
    drawTools();
  });
  // the fragment holds the state: a jump must not overwrite it
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    enter();
  });
}

function drawTools() {
  for (const element of document.querySelectorAll("[data-i18n]")) {
    element.textContent = t(/** @type {HTMLElement} */ (element).dataset.i18n ?? "");
  }
  for (const [id, keys] of [
    ["undo", "Control+Z"],
    ["redo", "Control+Shift+Z"],
  ]) {
    byId(id).textContent = t(`tool.${id}`);
    byId(id).setAttribute("aria-keyshortcuts", keys);
    byId(id).title = keys.replace("Control", "Ctrl");
  }
  const language = byId("language");
  language.textContent = t("tool.language");
  language.setAttribute("aria-label", t("tool.languageLabel"));
  language.lang = currentLanguage() === "zh" ? "en" : "zh-CN";
  byId("theme").textContent = t(currentTheme() === "dark" ? "tool.theme.light" : "tool.theme.dark");
}

/** @param {unknown} error */
function fail(error) {
  const reason = error instanceof Error ? error.message : String(error);
  // the language may be guessed wrong, so a failure is shown in both
  const texts = Object.entries(catalogues).map(([language, texts]) =>
    html("p", { lang: language }, texts["page.failed"].replace("{reason}", reason)),
  );
  const status = byId("status");
  const alert = html("div", { class: "status failed", role: "alert", id: "status" }, ...texts);
  status.replaceWith(alert);
  byId("content").hidden = true;
  byId("main").setAttribute("aria-busy", "false");
}

/**
 * Everything that the shell's state reaches: the address, the share panel, the messages.
 * @param {import("./engine.js").Library} library
 * @param {() => Promise<void>} [complete]
 */
function connect(library, complete) {
  /** @param {Found | Promise<Found>} finding */
  const follow = (finding) =>
    shell.during(async () => {
      const found = await finding;
      if (!found) return;
      hideNotice();
      if ("problem" in found) return showNotice(`share.problem.${found.problem}`);
      const refused = await shell.restore(found.snapshot, true);
      if (refused.length > 0) showNotice("share.problem.partly", refused);
    });
  const address = new Address(follow, (page) => shell.open(page));
  const shell = new Shell(
    library,
    {
      changed: (snapshot) => {
        address.changed(snapshot);
        panel.redraw();
        if (embedded) drawWayOut(shell);
      },
      failed: (id) => showNotice("share.problem.draw", [id]),
    },
    complete,
  );
  const panel = new SharePanel(shell, follow);
  return { shell, address };
}

/**
 * Inside another page there is no header: one link leads to the whole.
 * @param {Shell} shell
 */
async function drawWayOut(shell) {
  const href = await linkTo(shell.whole);
  byId("foot").replaceChildren(html("a", { href, target: "_blank", rel: "noopener" }, t("share.embedded")));
}

/**
 * @param {Shell} shell
 * @param {Found} found what the link carried
 */
async function begin(shell, found) {
  const wanted = pages.some(({ id }) => id === query.get("page")) ? String(query.get("page")) : pages[0].id;
  if (!found || "problem" in found) {
    await shell.open(wanted);
    if (found) showNotice(`share.problem.${found.problem}`);
    return;
  }
  const refused = await shell.restore(found.snapshot);
  if (refused.length > 0) showNotice("share.problem.partly", refused);
}

async function start() {
  restoreTheme();
  document.documentElement.classList.toggle("embedded", embedded);
  // asked for at once, so that page, texts and library come side by side
  const first = pages.find(({ id }) => id === (query.get("page") ?? pages[0].id));
  /** @type {Promise<{ library: import("./engine.js").Library, build: string, complete?: () => Promise<void> }>} */
  const library = first?.start ? loadStart() : loadLibrary();
  for (const coming of [library, first?.load()]) coming?.catch(() => {});
  await setLanguage(query.get("lang") ?? remembered("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  await addTexts(["share"]);
  /** @type {ReturnType<typeof connect> | null} */
  let connected = null;
  let build = "";
  const drawFoot = () => {
    if (build !== "" && !embedded)
      byId("foot").replaceChildren(html("p", {}, t("page.foot", { build: t(`page.build.${build}`) })));
  };
  const redraw = () => {
    drawTools();
    drawNotice();
    drawFoot();
    connected?.address.speak(currentLanguage());
    connected?.shell.redraw();
  };
  setUpTools(redraw, () => (connected ? connected.shell.enter() : byId("main").focus()));
  breakFormulas(byId("content"), ".formula, .lab-formula");
  document.title = t("page.title");
  drawTools();
  try {
    const found = await fromAddress();
    const loaded = await library;
    build = loaded.build;
    connected = connect(loaded.library, loaded.complete);
    await begin(connected.shell, found);
    drawFoot();
    performance.mark("interactive");
    keepOffline(build);
  } catch (error) {
    fail(error);
  }
}

start();
