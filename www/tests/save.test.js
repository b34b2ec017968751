// Pictures that leave the page: standing alone, in the theme they were seen in, and looking the same.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { browserTest, cell, drawn, open } from "./harness.js";

for (const theme of ["light", "dark"]) {
  test(`a chart as SVG and PNG, ${theme}`, browserTest, async () => {
    const { page, problems, close } = await open({ theme });
    await page.locator(cell("whitened", 0)).focus();
    await drawn(page);
    const { text, size, box, head, corner, bar } = await page.evaluate(async () => {
      const { svgText, pngBlob } = await import(new URL("parts/save.js", document.baseURI).href);
      const picture = document.querySelector("#chart svg");
      const blob = await pngBlob(picture, 2);
      const image = await createImageBitmap(blob);
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width, image.height];
      const pen = canvas.getContext("2d", { willReadFrequently: true });
      pen.drawImage(image, 0, 0);
      const colourAt = (x, y) => [...pen.getImageData(2 * x, 2 * y, 1, 1).data].slice(0, 3);
      const first = picture.querySelector("rect").getBBox();
      return {
        text: svgText(picture),
        size: [image.width, image.height],
        box: [picture.viewBox.baseVal.width, picture.viewBox.baseVal.height],
        head: [...new Uint8Array(await blob.arrayBuffer())].slice(0, 4),
        corner: colourAt(1, 1),
        bar: colourAt(first.x + first.width / 2, first.y + first.height / 2),
      };
    });
    const [width, height] = box;
    assert.deepEqual(size, [2 * width, 2 * height]);
    assert.deepEqual(head, [0x89, 0x50, 0x4e, 0x47]);
    assert.deepEqual(corner, theme === "light" ? [255, 255, 255] : [0x1d, 0x1f, 0x22]);
    assert.notDeepEqual(bar, corner);
    // nothing in it needs the page: no variables, classes, styles or handles
    assert.doesNotMatch(text, /var\(|class=|style=|data-|tabindex/);
    assert.match(text, new RegExp(`^<\\?xml[^>]*>\n<svg[^>]* width="${width}" height="${height}"`));
    assert.match(text, /font-family="/);
    assert.match(text, /<title>[^<]*0\.822412/);
    assert.deepEqual(problems, []);
    await close();
  });
}

test("a file is saved under its name, a text is copied", browserTest, async () => {
  const { page, problems, close } = await open();
  const coming = page.waitForEvent("download");
  await page.evaluate(async () =>
    (await import(new URL("parts/save.js", document.baseURI).href)).saveFile("字.csv", "a,b\n−1,2\n"),
  );
  const file = await coming;
  assert.equal(file.suggestedFilename(), "字.csv");
  assert.equal(await readFile(await file.path(), "utf8"), "a,b\n−1,2\n");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const copied = await page.evaluate(async () => {
    const { copyText } = await import(new URL("parts/copy.js", document.baseURI).href);
    return [await copyText("x − 1"), await navigator.clipboard.readText()];
  });
  assert.deepEqual(copied, [true, "x − 1"]);
  assert.deepEqual(problems, []);
  await close();
});
