// A real browser for the tests: found or failed, never skipped.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts the browser with a profile of its own. */
export async function startBrowser(options = {}) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) {
    throw new Error(`${executablePath} is missing: install chromium, or name one in CHROMIUM`);
  }
  const profile = mkdtempSync(join(tmpdir(), "seekscope-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    args: ARGUMENTS,
    viewport: { width: 1400, height: 900 },
    ...options,
  });
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { context, close };
}

/** A folder for reports and a browser to open them in, for as long as a file's tests run. */
export function setUp() {
  const shared = { folder: "", browser: null };
  before(async () => {
    shared.folder = mkdtempSync(join(tmpdir(), "seekscope-report-"));
    shared.browser = await startBrowser();
  });
  after(async () => {
    await shared.browser?.close();
    rmSync(shared.folder, { recursive: true, force: true });
  });
  return shared;
}

/** A page that keeps all it complains about and all it asks for. */
export async function openReport(context, path, { ready = true } = {}) {
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => requests.push(request.url()));
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  const url = pathToFileURL(path).href;
  await page.goto(url);
  if (ready) await page.waitForSelector("html[data-ready=true]", { timeout: 60_000 });
  return { page, complaints, requests, url };
}

/** The page has complained of nothing and asked nobody for anything. */
export async function assertQuiet({ page, complaints, requests, url }) {
  assert.deepEqual(complaints, []);
  assert.deepEqual(requests, [url]);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
}

/** Renders a made-up run into `folder` and returns the report's path. */
export function sampleReport(folder, number, ...flags) {
  const path = join(folder, `report-${number}${flags.join("")}.html`);
  const built = process.env.SEEKSCOPE_SAMPLE_REPORT;
  const [program, first] = built
    ? [built, []]
    : [process.env.CARGO ?? "cargo", CARGO_ARGUMENTS];
  execFileSync(program, [...first, path, String(number), ...flags], { stdio: "inherit" });
  return path;
}

const CARGO_ARGUMENTS = [
  ..."run --quiet --release -p seekscope-report --example sample_report".split(" "),
  "--manifest-path",
  new URL("../../Cargo.toml", import.meta.url).pathname,
  "--",
];

/** Text that was meant to give orders has given none, and does not widen the page. */
export async function assertInert(page) {
  assert.ok(!/[\u0000-\u0008\u202a-\u202e]/.test(await page.content()));
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("main img, main svg, main script").count(), 0);
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  assert.equal(overflow, 0, "a long name makes the page scroll sideways");
}

/** Colour of the page in the light, in the dark and on paper; `check` is called in the dark. */
export async function assertThemes(page, check) {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.emulateMedia({ colorScheme: "dark" });
  assert.notEqual(await background(), light);
  await check();
  await page.emulateMedia({ colorScheme: "dark", media: "print" });
  assert.equal(await background(), light);
  await page.emulateMedia({ colorScheme: "light", media: "screen" });
}
