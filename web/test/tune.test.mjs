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

/** Each figure has a picture as wide as its place, all of whose words and marks lie in it. */
async function assertDrawn(page) {
  for (const id of FIGURES) {
    const drawing = page.locator(`#${id} svg.drawing`);
    const { width, outside } = await drawing.evaluate((svg) => {
      const frame = svg.getBoundingClientRect();
      const isOutside = (element) => {
        const box = element.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1 ||
          box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
      };
      const drawn = [...svg.querySelectorAll("path, rect, line, polyline, polygon, text")];
      return { width: frame.width, outside: drawn.filter(isOutside).map((e) => e.outerHTML) };
    });
    assert.ok(width > 400, `${id} is ${width} wide`);
    assert.deepEqual(outside, [], id);
    assert.ok((await drawing.getAttribute("aria-label")).length > 20);
    assert.equal(await drawing.getAttribute("role"), "img");
  }
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

  test("marks what is pointed at", async () => {
    const titles = await page.locator("#tune-convergence path title").allTextContents();
    assert.equal(titles.length, 76);
    assert.ok(titles.some((title) => /^run 12 \(search, model\), failed: the server did not start/.test(title)));
  });

  test("gives lines to copy as lines", async () => {
    const text = await page.locator("#change pre").first().innerText();
    const lines = text.split("\n").filter((line) => line !== "");
    assert.deepEqual(lines.slice(0, 3), ["storage:", "  journal:", "    commitIntervalMs: 500 # DURABILITY"]);
  });

  test("is drawn in the dark and on paper too", async () => {
    const ink = () => page.locator("#tune-heat .cell-number").first().evaluate((e) => getComputedStyle(e).fill);
    const light = await ink();
    await assertThemes(page, async () => assert.notEqual(await ink(), light));
  });

  test("asks for nothing and complains of nothing", () => assertQuiet(report));
});

test("without scripts every figure is there", async () => {
  const browser = await startBrowser({ javaScriptEnabled: false });
  try {
    const page = await browser.context.newPage();
    await page.goto(`file://${sampleReport(shared.folder, RUNS, "--tune")}`);
    for (const id of FIGURES) assert.ok((await page.locator(`#${id} svg.drawing`).boundingBox()).width > 400);
  } finally {
    await browser.close();
  }
});

test("an interrupted session claims nothing", async () => {
  const { page } = await openReport(shared.browser.context, sampleReport(shared.folder, 5, "--tune", "--interrupted"));
  assert.match(await page.locator("h1").textContent(), /^No duel was fought: the session ended before it/);
  assert.equal(await page.locator("#tune-convergence svg.drawing path").count(), 5);
});

test("hostile names stay text", async () => {
  const path = sampleReport(shared.folder, RUNS, "--tune", "--hostile");
  const { page } = await openReport(shared.browser.context, path);
  await assertInert(page);
  await page.setViewportSize({ width: 600, height: 900 });
  await assertInert(page);
});
