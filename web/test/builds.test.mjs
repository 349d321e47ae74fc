// The report of index builds in a real browser: what a reader sees and does.

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
import { colouredHeights, drag, drawnAs, figure, view } from "./figures.mjs";

// The page's figures in its order: the example's builds, then those of files and disks.
const FRESH = 0;
const AGED = 1;
const BUILDS = [0, 1, 2, 3];
const FILES = 4;

const shared = setUp();

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const spread = (values) => Math.max(...values) - Math.min(...values);

function assertDiagonal(bands) {
  bands.forEach((heights, i) => {
    assert.ok(heights.length > 0, `band ${i} is empty`);
    assert.ok(spread(heights) < 0.15, `band ${i} is spread over ${spread(heights)}`);
    if (i > 0) assert.ok(mean(heights) > mean(bands[i - 1]), `band ${i} does not rise`);
  });
}

function assertCloud(bands) {
  bands.forEach((heights, i) => {
    assert.ok(heights.length > 20, `band ${i} has ${heights.length} coloured pixels`);
    assert.ok(spread(heights) > 0.8, `band ${i} spans only ${spread(heights)}`);
    assert.ok(Math.abs(mean(heights) - mean(bands.flat())) < 0.15, `band ${i} leans`);
  });
}

describe("a report of 20,000 calls", () => {
  let report;
  let page;

  before(async () => {
    const path = sampleReport(shared.folder, 20_000);
    const size = statSync(path).size;
    console.log(`# report of 20,000 calls: ${size} bytes`);
    assert.ok(size < 600_000, `${size} bytes`);
    report = await openReport(shared.browser.context, path);
    page = report.page;
  });

  test("shows order as a diagonal and disorder as a cloud, call by call", async () => {
    for (const phase of BUILDS) await drawnAs(figure(page, phase, "offset"), "dots");
    assertDiagonal(await colouredHeights(figure(page, FRESH, "offset")));
    assertCloud(await colouredHeights(figure(page, AGED, "offset")));
    const latency = await colouredHeights(figure(page, AGED, "latency"));
    assert.ok(latency.every((band) => band.length > 0));
  });

  test("zooms by dragging and returns by double click", async () => {
    const chart = figure(page, AGED, "offset");
    const whole = await view(chart);
    await drag(chart, [0.25, 0.25], [0.5, 0.75]);
    const zoomed = await view(chart);
    const width = whole.x1 - whole.x0;
    assert.ok(Math.abs(zoomed.x0 - (whole.x0 + width * 0.25)) < width * 0.02, `${zoomed.x0}`);
    assert.ok(Math.abs(zoomed.x1 - (whole.x0 + width * 0.5)) < width * 0.02, `${zoomed.x1}`);
    assert.ok(Math.abs((zoomed.y1 - zoomed.y0) / (whole.y1 - whole.y0) - 0.5) < 0.02);
    await drawnAs(chart, "dots");
    const calls = Number((await chart.locator("output").textContent()).match(/[\d,]+/)[0].replace(",", ""));
    assert.ok(calls > 400 && calls < 900, `${calls} calls in an eighth of 5,400`);
    await chart.locator(".u-over").dblclick();
    assert.deepEqual(await view(chart), whole);
  });

  test("is worked by keyboard alone", async () => {
    const chart = figure(page, FRESH, "latency");
    const whole = await view(chart);
    await chart.getByRole("button", { name: "Zoom in" }).press("Enter");
    const zoomed = await view(chart);
    assert.ok(zoomed.x1 - zoomed.x0 < (whole.x1 - whole.x0) * 0.51);
    await chart.locator(".plot").press("ArrowRight");
    assert.ok((await view(chart)).x0 > zoomed.x0);
    await chart.getByRole("button", { name: "Reset zoom" }).press("Enter");
    assert.deepEqual(await view(chart), whole);
  });

  test("says what is under the pointer", async () => {
    const chart = figure(page, FRESH, "offset");
    const over = chart.locator(".u-over");
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    // Somewhere on the way across the middle lies the diagonal.
    for (let y = 0; y < box.height; y += 4) {
      await page.mouse.move(box.x + box.width / 2, box.y + y);
      if (await chart.locator(".tip").isVisible()) break;
    }
    const tip = await chart.locator(".tip").innerText();
    assert.match(tip, /^read, [\d.]+ (µs|ms)\nat \d+\.\d{6} s\noffset [\d,]+ \(.*\)\nlength 28,672 bytes$/);
  });

  test("shows another file when asked", async () => {
    const chart = figure(page, FILES, "offset");
    const menu = page.locator(`article.phase[data-phase="${FILES}"] select`);
    const before = await chart.locator("figcaption").textContent();
    await menu.selectOption("3");
    await page.waitForFunction(
      ([root, text]) => root.querySelector("figcaption").textContent !== text,
      [await chart.elementHandle(), before],
    );
    assert.match(await chart.locator("figcaption").textContent(), /index-\d--781\.wt/);
    await drawnAs(chart, "dots");
    await menu.selectOption("0");
    await page.waitForFunction(
      ([root, text]) => root.querySelector("figcaption").textContent === text,
      [await chart.elementHandle(), before],
    );
  });

  test("is readable in the dark and on paper", async () => {
    const chart = figure(page, AGED, "offset");
    await assertThemes(page, async () => assertCloud(await colouredHeights(chart)));
  });

  test("asks nobody for anything and complains of nothing", () => assertQuiet(report));
});

test("hostile names are text and nothing else", async () => {
  const path = sampleReport(shared.folder, 2_000, "--hostile");
  const report = await openReport(shared.browser.context, path);
  const { page } = report;
  for (const phase of BUILDS) await drawnAs(figure(page, phase, "offset"), "dots");
  const text = await page.locator("main").innerText();
  assert.ok(text.includes('<img src=x onerror="window.hacked=1">'));
  assert.ok(text.includes("</script><script>window.hacked=2</script>"));
  assert.ok(text.includes("abc\\u{202e}fdp.tw\"'&\\n\\u{7}\\u{0}"));
  assert.ok(text.includes("x".repeat(1000)));
  const menu = page.locator("#figures article.phase select").first();
  await menu.selectOption("1");
  await page.waitForTimeout(300);
  await assertInert(page);
  await assertQuiet(report);
});

test("without scripts the tables are still there", async () => {
  const plain = await startBrowser({ javaScriptEnabled: false });
  try {
    const path = sampleReport(shared.folder, 2_000);
    const { page } = await openReport(plain.context, path, { ready: false });
    const text = await page.locator("main").innerText();
    assert.match(text, /The figures need JavaScript/);
    assert.match(text, /5\.\d times as long \(3 pairs/);
    assert.match(text, /aged\.orders/);
    assert.ok((await page.locator("table").count()) >= 5);
    assert.ok(await page.locator("article.phase select").first().isDisabled());
  } finally {
    await plain.close();
  }
});

test("an odd locale does not cost the page its figures", async () => {
  const page = await shared.browser.context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.addInitScript(() => {
    Object.defineProperty(navigator, "language", { value: "en_US@posix" });
  });
  await page.goto(`file://${sampleReport(shared.folder, 2_000)}`);
  await drawnAs(figure(page, FRESH, "offset"), "dots");
  assert.deepEqual(errors, []);
});

test("beyond what the page has room for a sample is drawn, and said to be one", async () => {
  const report = await openReport(shared.browser.context, sampleReport(shared.folder, 1_500_000));
  const { page } = report;
  const chart = figure(page, AGED, "offset");
  await drawnAs(chart, "density");
  assert.match(await chart.locator("output").textContent(), /^405,000 calls/);
  assert.match(await chart.locator("figcaption").textContent(), /one call in 19 is drawn/);
  await drag(chart, [0.4, 0.4], [0.6, 0.6]);
  await drawnAs(chart, "dots");
  assert.match(await chart.locator("output").textContent(), /one in 19 kept/);
  await assertQuiet(report);
});
