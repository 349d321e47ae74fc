// The report of a layout in a real browser.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { assertInert, assertQuiet, openReport, sampleReport, setUp } from "./browser.mjs";
import { colouredHeights, drag, drawnAs, drawnColours, figure, view } from "./figures.mjs";

const LEAVES = 20_000;
const shared = setUp();

/** How far up coloured pixels reach in each twentieth of the width. */
async function spreads(chart) {
  const heights = await colouredHeights(chart);
  return heights.map((band) => Math.max(...band, 0) - Math.min(...band, 1));
}

describe("a report of a layout of 20,000 leaves a collection", () => {
  let report;
  let page;
  let chart;

  before(async () => {
    const path = sampleReport(shared.folder, LEAVES, "--layout", "--named");
    report = await openReport(shared.browser.context, path);
    page = report.page;
    chart = figure(page, 0, "offset");
  });

  test("draws a shuffled collection as a cloud and an ordered one as a line", async () => {
    await drawnAs(chart, "dots");
    assert.ok((await spreads(chart)).every((spread) => spread > 0.9));
    await page.locator("article.phase select").selectOption("1");
    await chart.locator("figcaption", { hasText: "shop.items is stored in order" }).waitFor();
    await drawnAs(chart, "dots");
    await page.waitForTimeout(200);
    assert.ok((await spreads(chart)).every((spread) => spread > 0 && spread < 0.2));
  });

  test("counts leaves, on an axis of leaves, and zooms into them", async () => {
    assert.match(await chart.locator("output").textContent(), /^20,000 leaves, one mark each/);
    assert.equal((await view(chart)).x1, LEAVES);
    await drag(chart, [0.2, 0.2], [0.4, 0.8]);
    await chart.locator("output", { hasText: /^(3,9|4,0)\d\d leaves/ }).waitFor();
    assert.equal(await page.locator('figure[data-kind="latency"]').count(), 0);
  });

  test("draws how the order went on, runs and gaps", async () => {
    // The bar of a file that is a single run is as low as bars get.
    for (const [id, files, least] of [["chart-history", 1, 50], ["chart-runs", 3, 2], ["chart-gaps", 3, 2]]) {
      const counts = await drawnColours(page, id);
      assert.equal(counts.filter((count) => count > least).length, files, `${id}: ${counts}`);
    }
  });

  test("asks for nothing and complains of nothing", () => assertQuiet(report));
});

test("hostile names stay text", async () => {
  const path = sampleReport(shared.folder, 500, "--layout", "--hostile");
  await assertInert((await openReport(shared.browser.context, path)).page);
});
