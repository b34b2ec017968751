// Lets code that calls the library step by step run on an engine that answers later. The work is stopped at its first
// call without an answer, and run again from the start when the answer is there: what it asked before, it is told
// again.

/** Thrown through the work to stop it; whoever catches errors on the way must let it pass. */
export class Pending extends Error {
  name = "Pending";

  /** @param {Promise<Answered>} answer */
  constructor(answer) {
    super("no answer yet");
    this.answer = answer;
  }
}

/** @typedef {{ value: any } | { error: unknown }} Answered */

/**
 * @template T
 * @param {(name: string, given: any[]) => Promise<any>} ask
 * @param {(call: (name: string, given: any[]) => any) => T} work asks the same at every run, as long as it is told the
 *   same; must not change what it is told, nor anything outside of it
 * @returns {Promise<T>}
 */
export async function replayed(ask, work) {
  /** @type {Answered[]} */
  const answers = [];
  for (;;) {
    let next = 0;
    const call = (/** @type {string} */ name, /** @type {any[]} */ given) => {
      const known = answers[next];
      next += 1;
      if (known === undefined)
        throw new Pending(
          ask(name, given).then(
            (value) => ({ value }),
            (error) => ({ error }),
          ),
        );
      if ("error" in known) throw known.error;
      return known.value;
    };
    try {
      return work(call);
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      answers.push(await error.answer);
    }
  }
}
