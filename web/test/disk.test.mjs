// The report of a disk run in a real browser.

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

// The example's run is always of the same length.
const ANY = 0;
const FIGURES = [
  "chart-ramp",
  "chart-latency",
  "chart-percentiles",
  "chart-rate",
  "chart-tail",
  "chart-order",
];

const shared = setUp();

describe("a report of a whole disk run", () => {
  let report;
  let page;

  before(async () => {
    const path = sampleReport(shared.folder, ANY, "--disk");
    console.log(`# report of a disk run: ${statSync(path).size} bytes`);
    assert.ok(statSync(path).size < 400_000);
    report = await openReport(shared.browser.context, path);
    page = report.page;
  });

  test("draws every line of every figure", async () => {
    const lines = { "chart-ramp": 3, "chart-latency": 3, "chart-percentiles": 5, "chart-order": 2 };
    for (const id of FIGURES) {
      const counts = await drawnColours(page, id);
      const wanted = lines[id] ?? 2;
      const drawn = counts.map((count, i) => (count > 50 ? i : -1)).filter((i) => i >= 0);
      assert.deepEqual(drawn, [...Array(wanted).keys()], `${id}: ${counts}`);
    }
  });

  test("gives each figure a caption, and its section a table", async () => {
    for (const id of FIGURES) {
      const caption = await page.locator(`#${id} figcaption`).textContent();
      assert.ok(caption.length > 20, `${id}: ${caption}`);
      assert.ok((await page.locator(`section:has(#${id}) table`).count()) >= 1, id);
    }
    assert.match(
      await page.locator("#chart-order figcaption").textContent(),
      /ordered rewrite could make a cold scan up to 26 times faster/,
    );
  });

  test("says what is under the pointer", async () => {
    await pointAt(page, "chart-ramp", 0.99);
    assert.match(await tipText(page, "chart-ramp"), /^128 in flight\n4 KiB: 63,519\n16 KiB: [\d,]+\n32 KiB: /);
    await pointAt(page, "chart-order", 0.9);
    assert.match(await tipText(page, "chart-order"), /^shuffled\nmeasured: 151 per second\npredicted by the model: 152 per second$/);
    await pointAt(page, "chart-percentiles", 0.5);
    assert.match(await tipText(page, "chart-percentiles"), /^99\.7 %\n4 KiB reads, 1 in flight: [\d.]+ ms\n/);
  });

  test("is readable in the dark and on paper", async () => {
    await assertThemes(page, async () => {
      for (const id of FIGURES) {
        const counts = await drawnColours(page, id);
        assert.ok(counts[0] > 50 && counts[1] > 50, `${id} in the dark: ${counts}`);
      }
    });
  });

  test("asks nobody for anything and complains of nothing", () => assertQuiet(report));
});

test("hostile names are text and nothing else", async () => {
  const report = await openReport(shared.browser.context, sampleReport(shared.folder, ANY, "--disk", "--hostile"));
  const { page } = report;
  for (const summary of await page.locator("summary").all()) await summary.click();
  const text = await page.locator("body").innerText();
  for (const id of ["surroundings", "steps"]) {
    const part = await page.locator(`#${id}`).innerText();
    assert.ok(part.includes('<img src=x onerror="window.hacked=1">'), id);
    assert.ok(part.includes("</script><script>window.hacked=2</script>"), id);
    assert.ok(part.includes("abc\\u{202e}fdp.tw\"'&\\n\\u{7}\\u{0}"), id);
  }
  assert.ok(text.includes("x".repeat(1000)));
  await pointAt(page, "chart-order", 0.9);
  assert.match(await tipText(page, "chart-order"), /^<\/script><script>win…ow\.hacked=2<\/script>\n/);
  await assertInert(page);
  await assertQuiet(report);
});

test("a job shows how its rate held over time", async () => {
  const report = await openReport(shared.browser.context, sampleReport(shared.folder, 120, "--disk", "--job"));
  const { page } = report;
  assert.match(await page.locator("#chart-rate figcaption").textContent(), /The rate fell by [\d.]+ % after 41 s/);
  const counts = await drawnColours(page, "chart-rate");
  assert.ok(counts[0] > 200, `${counts}`);
  assert.equal(await page.locator("#ramp").count(), 0);
  await assertQuiet(report);
});

test("without scripts the tables are still there", async () => {
  const plain = await startBrowser({ javaScriptEnabled: false });
  try {
    const path = sampleReport(shared.folder, ANY, "--disk");
    const { page } = await openReport(plain.context, path, { ready: false });
    const text = await page.locator("main").innerText();
    assert.match(text, /The figures need JavaScript/);
    assert.match(text, /64 \(knee\)/);
    assert.match(text, /A journaled commit \(j:true\) waits/);
    await page.locator("#steps summary").click();
    assert.match(await page.locator("#steps").innerText(), /order runs of 64/);
    assert.ok((await page.locator("table").count()) >= 15);
  } finally {
    await plain.close();
  }
});
