// The report of a tuning session in a real browser.

import assert from "node:assert/strict";
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
import { drawnColours } from "./figures.mjs";

const RUNS = 40;
const FIGURES = [
  "tune-duels",
  "tune-convergence",
  "tune-importance",
  "tune-slice-0",
  "tune-slice-1",
  "tune-slice-2",
  "tune-heat",
];

const shared = setUp();

/** Each figure has a picture as wide as its place, and something is drawn in it. */
async function assertDrawn(page) {
  for (const id of FIGURES) {
    const width = await page.locator(`#${id} canvas`).evaluate((canvas) => canvas.clientWidth);
    assert.ok(width > 400, `${id} is ${width} wide`);
    const drawn = (await drawnColours(page, id)).reduce((sum, pixels) => sum + pixels, 0);
    assert.ok(drawn > 300, `${id} has ${drawn} pixels of lines and marks`);
  }
}

/** What is said of the value at that share of the figure's width. */
async function tipAt(page, id, share) {
  const over = page.locator(`#${id} .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
  return page.locator(`#${id} .tip`).innerText();
}

describe("a report of a session", () => {
  let report;
  let page;

  before(async () => {
    report = await openReport(shared.browser.context, sampleReport(shared.folder, RUNS, "--tune"));
    page = report.page;
  });

  test("says first what was proven, then what a crash may lose", async () => {
    assert.equal(await page.locator("h1").textContent(), "1.42 × the throughput (1.31 to 1.52, 6 pairs)");
    assert.match(await page.locator("[data-outcome=durability]").textContent(), /commit_interval/);
  });

  test("draws every figure", () => assertDrawn(page));

  test("says what is pointed at", async () => {
    // The axis goes from 0 to a little beyond the last of 76 runs.
    const tip = await tipAt(page, "tune-convergence", 12 / 81.25);
    assert.match(tip, /^run 12$/m);
    assert.match(tip, /^run 12 \(search, model\), after .*, failed: the server did not start/m);
    assert.match(await tipAt(page, "tune-slice-2", 0.5), /^expected: [\d,]+$/m);
  });

  test("gives lines to copy as lines", async () => {
    const text = await page.locator("#change pre").first().innerText();
    const lines = text.split("\n").filter((line) => line !== "");
    assert.deepEqual(lines.slice(0, 3), ["storage:", "  journal:", "    commitIntervalMs: 500 # DURABILITY"]);
  });

  test("is drawn in the dark and on paper too", () => assertThemes(page, () => assertDrawn(page)));

  test("asks for nothing and complains of nothing", () => assertQuiet(report));
});

test("without scripts the tables have every number, and no figure is empty", async () => {
  const browser = await startBrowser({ javaScriptEnabled: false });
  try {
    const page = await browser.context.newPage();
    await page.goto(`file://${sampleReport(shared.folder, RUNS, "--tune")}`);
    assert.equal(await page.locator("figure:visible").count(), 0);
    for (const id of ["duel", "importance", "trials", "response"]) {
      assert.ok((await page.locator(`#${id} table`).count()) > 0, id);
    }
  } finally {
    await browser.close();
  }
});

test("an interrupted session claims nothing", async () => {
  const { page } = await openReport(shared.browser.context, sampleReport(shared.folder, 5, "--tune", "--interrupted"));
  assert.match(await page.locator("h1").textContent(), /^No duel was fought: the session did not get that far/);
  assert.equal(await page.locator("#tune-convergence canvas").count(), 1);
  assert.equal(await page.locator("#tune-duels").count(), 0);
});

test("hostile names stay text", async () => {
  const path = sampleReport(shared.folder, RUNS, "--tune", "--hostile");
  const { page } = await openReport(shared.browser.context, path);
  await assertInert(page);
  await page.setViewportSize({ width: 600, height: 900 });
  await assertInert(page);
});
