// The report of an examination in a real browser.

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
import { drawnAs, drawnColours, figure } from "./figures.mjs";

const SIZE_MAX = 3_000_000;
const TRACKS = ["operations", "latency", "requests", "bytes", "disk-latency", "cache", "pressure"];
const shared = setUp();

const track = (name) => `tracks-run-${name}`;
const readouts = (page, name) => page.locator(`#${track(name)} .legend output`).allInnerTexts();
const view = async (page) => (await page.getAttribute("#tracks-run", "data-view")).split(",").map(Number);

describe("a report of an examination", () => {
  let report;
  let page;

  before(async () => {
    report = await openReport(shared.browser.context, sampleReport(shared.folder, 20_000, "--doctor"));
    page = report.page;
  });

  test("begins with the verdict and at most five findings", async () => {
    assert.match(await page.locator("h1").innerText(), /^The disk is the bottleneck: 87\.0 % of what it can do/);
    assert.match(await page.locator("p.verdict").innerText(), /^7 findings; the first: shop\.orders lies in random order.* Acting on it saves about 1,410 s/);
    assert.equal(await page.locator("#findings article.finding").count(), 5);
    const first = page.locator("#findings article.finding").first();
    assert.match(await first.innerText(), /between 1,180 and 1,630[\s\S]*high[\s\S]*free space/);
    assert.equal(await page.locator("#further ol").getAttribute("start"), "6");
    assert.equal(await page.locator("#further article.finding").count(), 2);
  });

  test("copies a command of several lines as it stands", async () => {
    await shared.browser.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const finding = page.locator('article.finding[data-finding="huge-pages.unfit"]');
    await finding.getByRole("button", { name: "Copy the command" }).click();
    await finding.getByText("Copied").waitFor();
    const lines = (await page.evaluate(() => navigator.clipboard.readText())).split("\n");
    assert.equal(lines.length, 2);
    assert.ok(lines.every((line) => line.startsWith("echo never | sudo tee /sys/kernel/mm/")));
  });

  test("draws every track, told apart without colour too", async () => {
    for (const name of TRACKS) {
      const counts = await drawnColours(page, track(name));
      assert.ok(counts[0] > 100 && counts[1] > 50, `${name}: ${counts}`);
      assert.equal(await page.locator(`#${track(name)} .legend .dashed`).count(), 1, name);
    }
    assert.equal(await page.locator("#tracks-before figure.track").count(), 2);
  });

  test("one pointer reads all tracks, by mouse and by keyboard", async () => {
    const over = page.locator(`#${track("operations")} .u-over`);
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    // Within a checkpoint, which lasts from the 24th to the 31st second.
    await page.mouse.move(box.x + (box.width * 27.4) / 60, box.y + 20);
    assert.match(await page.locator("#tracks-run output.moment").innerText(), /^27\.\d s, a checkpoint$/);
    assert.match((await readouts(page, "latency"))[1], /^8\.\d+ ms$/);
    assert.match((await readouts(page, "cache"))[0], /^(7|8)\d(\.\d)? %$/);
    await page.mouse.move(0, 0);
    assert.deepEqual(await readouts(page, "latency"), ["", ""]);
    await page.locator("#tracks-run").focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    assert.match((await readouts(page, "operations"))[0], /^[\d,]+$/);
    assert.match((await readouts(page, "pressure"))[0], /^31 %$/);
  });

  test("one zoom for all tracks", async () => {
    assert.deepEqual(await view(page), [0, 60]);
    await page.locator("#tracks-run").focus();
    await page.keyboard.press("+");
    assert.deepEqual(await view(page), [15, 45]);
    await page.keyboard.press("Escape");
    assert.deepEqual(await view(page), [0, 60]);
  });

  test("draws heat maps of files and disks, and how the data lies", async () => {
    await drawnAs(figure(page, 0, "offset"), "dots");
    await drawnAs(figure(page, 1, "latency"), "dots");
    const leaves = figure(page, 2, "offset");
    await drawnAs(leaves, "density");
    assert.match(await leaves.locator("output").textContent(), /^30,000 leaves/);
  });

  test("answers every question, each in its section", async () => {
    const links = await page.locator("nav.contents a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
    for (const link of links) assert.equal(await page.locator(link).count(), 1, link);
    assert.ok(links.length >= 12, `${links}`);
    const said = {
      device: /shop\.orders\s+application\s+reads\s+random/,
      checkpoints: /eviction_dirty_target=3[\s\S]*journal syncs\s+41\.0 ms\s+3\.70 ms\s+11/,
      durations: /4\.20 min\s+3\.49 min to 5\.04 min\s+9\.10 s/,
      space: /nothing/,
      memory: /SHARDS[\s\S]*off by up to 3\.0 %/,
      host: /^[\s\S]*✗\u00a0change[\s\S]*✓\u00a0fits/,
      members: /What sets db2\.example:27017 apart[\s\S]*◆ 610/,
      since: /The prediction held/,
      facts: /What it cost[\s\S]*61\.0 MiB/,
    };
    for (const [id, words] of Object.entries(said)) {
      assert.match(await page.locator(`#${id}`).innerText(), words);
    }
    const counts = await drawnColours(page, "chart-memory");
    assert.ok(counts[0] > 100 && counts[6] > 100, `${counts}`);
  });

  test("is readable in the dark and on paper", async () => {
    await assertThemes(page, async () => {
      // The figures hear of the change a moment after the page's style.
      let counts = [];
      for (let looks = 0; looks < 50 && !(counts[0] > 100); looks++) {
        await page.waitForTimeout(100);
        counts = await drawnColours(page, track("operations"));
      }
      assert.ok(counts[0] > 100 && counts[1] > 50, `${counts}`);
    });
  });

  test("asks nobody for anything and complains of nothing", () => assertQuiet(report));
});

test("a million events make a page that is small and opens", async () => {
  const path = sampleReport(shared.folder, 640_000, "--doctor");
  const size = statSync(path).size;
  assert.ok(size < SIZE_MAX, `${size} bytes`);
  const started = performance.now();
  const report = await openReport(shared.browser.context, path);
  const seconds = (performance.now() - started) / 1000;
  // Logged, not asserted: machines are noisy.
  console.log(`# examination of a million events: ${size} bytes, ready after ${seconds.toFixed(2)} s`);
  const drawn = await figure(report.page, 0, "offset").locator("output").textContent();
  assert.match(drawn, /^4\d\d,\d{3} calls, shaded by number/);
  assert.match(await report.page.locator("#facts").innerText(), /… written\s+9[78]\d,\d{3}/);
  await assertQuiet(report);
});

test("hostile names, titles and commands are text and nothing else", async () => {
  const report = await openReport(shared.browser.context, sampleReport(shared.folder, 2_000, "--doctor", "--hostile"));
  const { page } = report;
  const text = await page.locator("#findings").innerText();
  assert.ok(text.includes('<img src=x onerror="window.hacked=1">'));
  assert.ok(text.includes("</script><script>window.hacked=2</script>"));
  assert.ok((await page.locator("#members").innerText()).includes("</script>"));
  await assertInert(page);
  await assertQuiet(report);
});

test("without scripts findings and tables are still there, and no empty figures", async () => {
  const plain = await startBrowser({ javaScriptEnabled: false });
  try {
    const path = sampleReport(shared.folder, 2_000, "--doctor");
    const { page } = await openReport(plain.context, path, { ready: false });
    const text = await page.locator("main").innerText();
    assert.match(text, /The figures need JavaScript/);
    assert.match(text, /seekscope reorder mongodb/);
    assert.match(text, /What sets db2/);
    await page.locator("#tracks summary").first().click();
    assert.match(await page.locator("#tracks").innerText(), /Mean time of an operation[\s\S]*reads\s+[\d.]+ ms/);
    assert.equal(await page.locator("figure:visible").count(), 0);
    assert.ok((await page.locator("table").count()) >= 15);
  } finally {
    await plain.close();
  }
});
