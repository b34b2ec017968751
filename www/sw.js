// Serves the page from a cache when the network fails. `cargo xtask playground` writes `FILES` and `BUILD` above this
// line.
/* global BUILD, FILES */

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));

// one origin may serve several copies of the page: each has its own cache
const MINE = `tokenwise ${new URL(worker.registration.scope).pathname} `;
const CACHE = MINE + BUILD;
const library = new URL(worker.location.href).searchParams.get("library");

const other = { simd: "plain", plain: "simd" }[library ?? ""];
// what few readers ask for is kept once it was loaded
const later = ["pkg/gpu/", ...(other ? [`pkg/${other}/`, `pkg/chain-${other}/`] : [])];
/** @param {string} file */
const isLater = (file) => later.some((folder) => file.startsWith(folder));

worker.addEventListener("install", (event) => {
  const wanted = FILES.filter((file) => !isLater(file));
  event.waitUntil(
    (async () => {
      const cache = await caches.open(CACHE);
      await cache.addAll(wanted.map((file) => new Request(file, { cache: "no-cache" })));
      await worker.skipWaiting();
    })(),
  );
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) {
        if (name.startsWith(MINE) && name !== CACHE) await caches.delete(name);
      }
      await worker.clients.claim();
    })(),
  );
});

// the network first, so that a reload always shows the newest page; the cache only if it fails
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const address = new URL(request.url);
  if (request.method !== "GET" || !address.href.startsWith(worker.registration.scope)) return;
  event.respondWith(
    (async () => {
      try {
        const response = await fetch(request);
        if (response.ok && isLater(address.href.slice(worker.registration.scope.length))) {
          const copy = response.clone();
          event.waitUntil(caches.open(CACHE).then((cache) => cache.put(request, copy)));
        }
        return response;
      } catch (error) {
        const cache = await caches.open(CACHE);
        const kept = await cache.match(request.mode === "navigate" ? "./" : request, { ignoreSearch: true });
        if (kept) return kept;
        throw error;
      }
    })(),
  );
});
