// The report of a trace in a real browser.

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
import { colouredHeights, drag, drawnAs, drawnColours, figure, pointAt, tipText } from "./figures.mjs";

// The page's plots, in order.
const FILES = 0;
const DISKS = 1;
const LINES = {
  "chart-rates": 3,
  "chart-latency": 4,
  "chart-working-set": 2,
  "chart-growth": 2,
  "chart-cache": 1,
};

const shared = setUp();

/** Coloured pixels per twentieth of the width, and how far up they reach. */
async function bands(chart) {
  const heights = await colouredHeights(chart);
  return heights.map((band) => ({ pixels: band.length, spread: Math.max(...band, 0) - Math.min(...band, 1) }));
}

describe("a report of a trace of 20,000 calls", () => {
  let report;
  let page;

  before(async () => {
    const path = sampleReport(shared.folder, 20_000, "--trace");
    console.log(`# report of a trace of 20,000 calls: ${statSync(path).size} bytes`);
    assert.ok(statSync(path).size < 700_000);
    report = await openReport(shared.browser.context, path);
    page = report.page;
  });

  test("says first what was lost", async () => {
    const outcome = page.locator(".outcome");
    assert.equal(await outcome.getAttribute("data-outcome"), "lossy");
    assert.match(await outcome.textContent(), /Events were lost: 611 of 31,188/);
    assert.match(await page.locator("h1").textContent(), /^Random reads of shop\.orders/);
  });

  test("draws random reads as a cloud and a scan as a line that begins half-way", async () => {
    const chart = figure(page, FILES, "offset");
    await drawnAs(chart, "dots");
    for (const band of await bands(chart)) assert.ok(band.pixels > 20 && band.spread > 0.8, `${band.spread}`);
    await page.locator('article.phase[data-phase="0"] select').selectOption("1");
    await chart.locator("figcaption", { hasText: "collection-2--781.wt" }).waitFor();
    await drawnAs(chart, "dots");
    await page.waitForTimeout(200);
    const scan = await bands(chart);
    assert.ok(scan.slice(0, 9).every((band) => band.pixels === 0), "the scan begins half-way");
    assert.ok(scan.slice(11).every((band) => band.pixels > 0 && band.spread < 0.25));
  });

  test("draws the disk's requests beside the files'", async () => {
    const chart = figure(page, DISKS, "offset");
    await drawnAs(chart, "dots");
    assert.match(await chart.locator("figcaption").textContent(), /8,\d{3} read requests and 1,000 write requests/);
    const total = (await bands(chart)).reduce((sum, band) => sum + band.pixels, 0);
    assert.ok(total > 1000, `${total} coloured pixels`);
    assert.ok((await bands(figure(page, DISKS, "latency"))).every((band) => band.pixels > 0));
  });

  test("draws every line of every figure", async () => {
    for (const [id, wanted] of Object.entries(LINES)) {
      const counts = await drawnColours(page, id);
      const drawn = counts.map((count, i) => (count > 50 ? i : -1)).filter((i) => i >= 0);
      assert.deepEqual(drawn, [...Array(wanted).keys()], `${id}: ${counts}`);
    }
  });

  test("says what is under the pointer", async () => {
    await pointAt(page, "chart-cache", 0.99);
    assert.match(await tipText(page, "chart-cache"), /^[\d.]+ MiB\nmissed: [\d.]+ %$/);
    await pointAt(page, "chart-growth", 0.99);
    assert.match(await tipText(page, "chart-growth"), /^\d+\.\d s\nshop\.orders .*: [\d.]+ MiB\n/);
    await pointAt(page, "chart-latency", 0.5);
    assert.match(await tipText(page, "chart-latency"), /reads from the page cache: [\d.]+ µs\nreads from the disk: /);
  });

  test("says what stands out, with numbers", async () => {
    const text = await page.locator("#standing-out").innerText();
    assert.match(text, /are random: > 99\.9 % of the steps are seeks; 5\d\.\d % waited for the disk/);
    assert.match(text, /Syncs of WiredTigerLog\.0000000003: 1,000/);
  });

  test("is readable in the dark and on paper", () =>
    assertThemes(page, async () => {
      const counts = await drawnColours(page, "chart-rates");
      assert.ok(counts[0] > 50 && counts[1] > 50, `${counts}`);
      assert.ok((await bands(figure(page, DISKS, "latency"))).every((band) => band.pixels > 0));
    }));

  test("asks nobody for anything and complains of nothing", () => assertQuiet(report));
});

test("hostile names are text and nothing else", async () => {
  const path = sampleReport(shared.folder, 2_000, "--trace", "--hostile");
  const report = await openReport(shared.browser.context, path);
  const { page } = report;
  await drawnAs(figure(page, FILES, "offset"), "dots");
  for (const summary of await page.locator("summary").all()) await summary.click();
  for (const id of ["recording", "threads", "order", "disk", "files", "latency"]) {
    const part = await page.locator(`#${id}`).innerText();
    assert.ok(part.includes('<img src=x onerror="window.hacked=1">'), id);
  }
  const text = await page.locator("main").innerText();
  assert.ok(text.includes("</script><script>window.hacked=2</script>"));
  assert.ok(text.includes("abc\\u{202e}fdp.tw\"'&\\n\\u{7}\\u{0}"));
  const menu = page.locator('article.phase[data-phase="0"] select');
  for (const index of ["1", "2", "0"]) await menu.selectOption(index);
  await pointAt(page, "chart-growth", 0.99);
  await page.waitForTimeout(300);
  await assertInert(page);
  await assertQuiet(report);
});

test("two million calls are counted, and a sample of them drawn", async () => {
  const path = sampleReport(shared.folder, 2_000_000, "--trace");
  console.log(`# report of a trace of 2,000,000 calls: ${statSync(path).size} bytes`);
  const report = await openReport(shared.browser.context, path);
  const { page } = report;
  const chart = figure(page, FILES, "offset");
  await drawnAs(chart, "density");
  assert.match(await chart.locator("output").textContent(), /^1,450,000 calls, shaded/);
  for (const band of await bands(chart)) assert.ok(band.pixels > 20 && band.spread > 0.8);
  await drag(chart, [0.4, 0.3], [0.5, 0.6]);
  await drawnAs(chart, "dots");
  assert.match(await chart.locator("output").textContent(), /one in 4 kept/);
  await assertQuiet(report);
});

test("without scripts the tables are still there", async () => {
  const plain = await startBrowser({ javaScriptEnabled: false });
  try {
    const path = sampleReport(shared.folder, 2_000, "--trace");
    const { page } = await openReport(plain.context, path, { ready: false });
    const text = await page.locator("main").innerText();
    assert.match(text, /The figures need JavaScript/);
    assert.match(text, /collection-7--781\.wt/);
    assert.match(text, /io_uring\s+no\s+not asked for/);
    assert.ok((await page.locator("table").count()) >= 9);
  } finally {
    await plain.close();
  }
});
