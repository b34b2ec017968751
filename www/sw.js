// Answers when the network does not. `FILES` and `BUILD` are written above this line by `cargo xtask playground`.
/* global BUILD, FILES */

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));

// one origin may serve several copies of the page: each keeps to its own
const MINE = `tokenwise ${new URL(worker.registration.scope).pathname} `;
const CACHE = MINE + BUILD;
const library = new URL(worker.location.href).searchParams.get("library");

worker.addEventListener("install", (event) => {
  const unused = library === "simd" ? "pkg/plain/" : library === "plain" ? "pkg/simd/" : "\u0000";
  const wanted = FILES.filter((file) => !file.startsWith(unused));
  event.waitUntil((async () => {
    const cache = await caches.open(CACHE);
    await cache.addAll(wanted.map((file) => new Request(file, { cache: "no-cache" })));
    await worker.skipWaiting();
  })());
});

worker.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith(MINE) && name !== CACHE) await caches.delete(name);
    }
    await worker.clients.claim();
  })());
});

// the network first, so that a reload always shows the newest page; what was kept only where there is none
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const address = new URL(request.url);
  if (request.method !== "GET" || !address.href.startsWith(worker.registration.scope)) return;
  event.respondWith((async () => {
    try {
      return await fetch(request);
    } catch (error) {
      const cache = await caches.open(CACHE);
      const kept = await cache.match(request.mode === "navigate" ? "./" : request, { ignoreSearch: true });
      if (kept) return kept;
      throw error;
    }
  })());
});
