// How the tests use the laboratory that learns.

export const choose = (page, name, value) => page.locator(`#choice-learn-${name}`).selectOption(value);
export const print = (page) => page.locator("#learn-print").textContent();
/** Waits until the updates asked for are made. */
export const settled = (page) => page.waitForSelector("#page-learn[aria-busy=false]");
export const goTo = async (page, update) => {
  // the slider ends at the last update made: the field of the test has no such end
  await page.evaluate((value) => {
    const slider = document.querySelector("#learn-at");
    slider.max = "5000";
    slider.value = String(value);
    slider.dispatchEvent(new Event("input"));
    slider.dispatchEvent(new Event("change"));
  }, update);
  await settled(page);
};

/** Runs updates in the page, without drawing. */
export const learn = (page, changes, updates, build) =>
  page.evaluate(
    async ([given, count, which]) => {
      const load = (path) => import(new URL(path, document.baseURI).href);
      const [{ Run }, { defaults, worldDefaults }, { loadLibrary, loadBuild }] = await Promise.all(
        ["labs/learn/run.js", "labs/learn/state.js", "engine.js"].map(load),
      );
      const library = which ? await loadBuild(which) : (await loadLibrary()).library;
      const world = { ...worldDefaults };
      const settings = { ...defaults };
      for (const [key, value] of Object.entries(given)) (key in world ? world : settings)[key] = value;
      const run = new Run(library, world, [{ from: 0, settings }]);
      run.goTo(count);
      const { metrics, prints, at, diverged, refusal } = run;
      run.free();
      return { metrics, prints, at, diverged, refusal };
    },
    [changes, updates, build],
  );
