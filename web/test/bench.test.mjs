// The report of a benchmark in a real browser.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { before, describe, test } from "node:test";
import {
  assertInert,
  assertQuiet,
  assertThemes,
  openReport,
  sampleReport,
  setUp,
  startBrowser,
} from "./browser.mjs";
import { drawnColours, pointAt, tipText } from "./figures.mjs";

const SECONDS = 60;
/** Figures and how many lines each has; step 0 is the load, 1 the open loop. */
const FIGURES = {
  "chart-0-rate": 1,
  "chart-1-rate": 2,
  "chart-1-latency-0": 6,
  "chart-1-curve": 4,
  "chart-1-cache": 2,
  "chart-1-cpu": 2,
  "chart-1-disk": 2,
  "chart-saturation": 3,
  "chart-growth": 2,
  "chart-variants": 2,
  "chart-sizes": 2,
};

const shared = setUp();

async function openSteps(page) {
  for (const summary of await page.locator("#steps summary").all()) await summary.click();
  // Figures take their width when they are seen.
  await page.waitForTimeout(300);
}

/** Pixels of the figure's picture that are neither grey nor transparent. */
function colouredPixels(page, id) {
  return page.locator(`#${id}`).evaluate((root) => {
    const canvas = root.querySelector("canvas");
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
    let coloured = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] > 0 && pixels[i + 2] - pixels[i] > 40) coloured++;
    }
    return coloured;
  });
}

describe("a report of a benchmark", () => {
  let report;
  let page;

  before(async () => {
    const path = sampleReport(shared.folder, SECONDS, "--bench");
    console.log(`# report of a benchmark: ${statSync(path).size} bytes`);
    assert.ok(statSync(path).size < 500_000);
    report = await openReport(shared.browser.context, path);
    page = report.page;
    await openSteps(page);
  });

  test("begins with the verdict", async () => {
    assert.match(await page.locator("p.outcome").innerText(), /^OK: everything asked for was measured/);
  });

  test("draws every line of every figure, with a caption", async () => {
    for (const [id, lines] of Object.entries(FIGURES)) {
      const counts = await drawnColours(page, id);
      const drawn = counts.filter((count) => count > 15).length;
      assert.ok(drawn >= lines - 1 && drawn <= lines, `${id}: ${counts}`);
      assert.ok((await page.locator(`#${id} figcaption`).textContent()).length > 15, id);
    }
  });

  test("draws every request into the heat map, and says how many", async () => {
    assert.ok((await colouredPixels(page, "heat-1")) > 1000);
    await pointAt(page, "heat-1", 0.2);
    assert.match(await tipText(page, "heat-1"), /^[\d.]+ s\n[\d,]+ requests\n[\d.]+ [µm]s to [\d.]+ m?s$/);
  });

  test("shows the stall in response time, not in service time", async () => {
    await pointAt(page, "chart-1-latency-0", 34.6 / SECONDS);
    const tip = await tipText(page, "chart-1-latency-0");
    assert.match(tip, /response p99: 3\.\d+ s/);
    assert.match(tip, /service p99: [\d.]+ ms/);
  });

  test("marks events on the time axis", async () => {
    await pointAt(page, "chart-1-rate", 10 / SECONDS);
    assert.match(await tipText(page, "chart-1-rate"), /warm-up ended/);
    await pointAt(page, "chart-1-rate", 17.2 / SECONDS);
    assert.match(await tipText(page, "chart-1-rate"), /checkpoint/);
  });

  test("says what variants did, with intervals", async () => {
    await pointAt(page, "chart-variants", 0.5);
    assert.match(await tipText(page, "chart-variants"), /zlib: 1,\d+ per second \(1,\d+ to 1,\d+\)/);
    assert.match(await page.locator("#variants").innerText(), /B does 1\d\.\d % fewer per second than A/);
  });

  test("is readable in the dark and on paper", async () => {
    await assertThemes(page, async () => {
      const counts = await drawnColours(page, "chart-1-rate");
      assert.ok(counts[0] > 50 && counts[1] > 50, `${counts}`);
      assert.ok((await colouredPixels(page, "heat-1")) > 500);
    });
  });

  test("asks nobody for anything and complains of nothing", () => assertQuiet(report));
});

test("hostile operations are text and nothing else", async () => {
  const path = sampleReport(shared.folder, 40, "--bench", "--hostile");
  const report = await openReport(shared.browser.context, path);
  const { page } = report;
  await openSteps(page);
  const text = await page.locator("#numbers").innerText();
  assert.ok(text.includes('<img src=x onerror="window.hacked=1">'));
  assert.ok(text.includes("</script><script>window.hacked=2</script>"));
  assert.ok(text.includes("abc\\u{202e}fdp.tw\"'&\\n\\u{7}\\u{0}"));
  await pointAt(page, "chart-1-rate", 0.5);
  assert.match(await tipText(page, "chart-1-rate"), /<\/script><script>/);
  await assertInert(page);
  await assertQuiet(report);
});

test("without scripts the tables are still there", async () => {
  const plain = await startBrowser({ javaScriptEnabled: false });
  try {
    const path = sampleReport(shared.folder, SECONDS, "--bench");
    const { page } = await openReport(plain.context, path, { ready: false });
    const text = await page.locator("main").innerText();
    assert.match(text, /The figures need JavaScript/);
    assert.match(text, /connection reset by peer/);
    assert.match(text, /one document per month/);
    assert.ok((await page.locator("table").count()) >= 10);
  } finally {
    await plain.close();
  }
});
