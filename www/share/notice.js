// One message under the header, until it is dismissed: what was wrong with a link, what could not be shown.

import { t } from "../i18n/index.js";
import { byId, html } from "../parts/dom.js";

/** @type {{ key: string, names: string[] } | null} */
let present = null;

/**
 * @param {string} key of the sentence
 * @param {string[]} [pageNames] ids of the pages it is about
 */
export function showNotice(key, pageNames = []) {
  present = { key, names: pageNames };
  drawNotice();
}

export function hideNotice() {
  present = null;
  drawNotice();
}

/** In the current language. */
export function drawNotice() {
  const place = byId("notice");
  place.hidden = present === null;
  if (!present) return place.replaceChildren();
  // a link may name pages that do not exist; those have no name to show
  const names = present.names.filter((id) => document.getElementById(`tab-${id}`)).map((id) => t(`tab.${id}`));
  const text = t(present.key, { pages: names.length > 0 ? names.join(t("share.comma")) : t("share.unknownPage") });
  const away = () => {
    hideNotice();
    byId("main").focus({ preventScroll: true });
  };
  place.replaceChildren(
    html("p", { role: "alert" }, text),
    html("button", { type: "button", class: "small", onclick: away }, t("share.dismiss")),
  );
}
