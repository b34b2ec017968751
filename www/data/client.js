// The page's side of the worker: requests as promises, progress,
// and a stop that always works because it ends the worker.

/** @typedef {{ code: string, values: Record<string, string | number>, place: import("./fault.js").Place }} FaultData */

/** What a request ends with if it was not answered. */
export class Refused extends Error {
  /** @param {FaultData} fault */
  constructor(fault) {
    super(fault.code);
    this.fault = fault;
  }
}

/**
 * @typedef {object} Waiting a request without an answer yet
 * @property {(value: any) => void} resolve
 * @property {(error: Refused) => void} reject
 * @property {(progress: { stage: string, share: number }) => void} [progress]
 */

export class Client {
  constructor() {
    /** @type {Worker | null} */
    this.worker = null;
    this.next = 0;
    /** @type {Map<number, Waiting>} */
    this.open = new Map();
  }

  /**
   * @param {string} type
   * @param {Record<string, unknown>} request
   * @param {(progress: { stage: string, share: number }) => void} [progress]
   * @returns {Promise<any>}
   */
  ask(type, request, progress) {
    this.worker ??= this.start();
    this.next += 1;
    const id = this.next;
    const { worker } = this;
    return new Promise((resolve, reject) => {
      this.open.set(id, { resolve, reject, progress });
      worker.postMessage({ id, type, ...request });
    });
  }

  start() {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => {
      const request = this.open.get(data.id);
      if (!request) return;
      if (data.progress) {
        request.progress?.(data.progress);
        return;
      }
      this.open.delete(data.id);
      if (data.fault) request.reject(new Refused(data.fault));
      else request.resolve(data.result);
    });
    // a worker that cannot be loaded, or ran out of memory
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.stop({ code: "internal", values: { reason: event.message || "worker" }, place: {} });
    });
    return worker;
  }

  /** Ends everything under way; the next request begins anew. @param {FaultData} [fault] */
  stop(fault = { code: "stopped", values: {}, place: {} }) {
    this.worker?.terminate();
    this.worker = null;
    const open = [...this.open.values()];
    this.open.clear();
    for (const { reject } of open) reject(new Refused(fault));
  }
}
