// Caches the page for offline use, if `cargo xtask playground` assembled it: it writes the name of the build and the
// list of files. A failure costs nothing.

/** @param {string} build of the library: the other one need not be kept */
export async function keepOffline(build) {
  if (!("serviceWorker" in navigator) || !document.querySelector("meta[name=build]")) return;
  try {
    // `none`: the browser asks for the worker itself every time, so a new build is seen at once
    await navigator.serviceWorker.register(`sw.js?library=${build}`, { updateViaCache: "none" });
  } catch {
    // private windows and plain file servers refuse it; the page works all the same
  }
}
