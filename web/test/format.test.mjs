// Numbers as the pages show them, without a browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { transform } from "esbuild";

const source = readFileSync(new URL("../src/format.ts", import.meta.url), "utf8");
const { code } = await transform(source, { loader: "ts", format: "esm" });
const format = await import(`data:text/javascript,${encodeURIComponent(code)}`);

test("means are shown as in the tables beside the figures", () => {
  const shown = [
    [399.8044986647149, "400"],
    [42.069589122952195, "42.1"],
    [8.484368734312087, "8.48"],
    [2, "2.00"],
    [0, "0"],
    [0.0123, "0.0123"],
    [0.0001, "1.00e-4"],
  ];
  for (const [value, text] of shown) assert.equal(format.formatNumber(value), text);
});

test("bytes on average are whole ones", () => {
  assert.equal(format.formatBytes(430.94050420168065), "431 B");
  assert.equal(format.formatBytes(1024), "1.00 KiB");
});
