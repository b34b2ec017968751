// Light or dark: as the system says, until the user chooses.

import { remember, remembered } from "./storage.js";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** @returns {"light" | "dark"} */
export function currentTheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return dark.matches ? "dark" : "light";
}

export function restoreTheme() {
  const chosen = remembered("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}

export function toggleTheme() {
  const next = currentTheme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  remember("theme", next);
}
