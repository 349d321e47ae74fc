// Names under an axis, without a browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { transform } from "esbuild";

const source = readFileSync(new URL("../src/names.ts", import.meta.url), "utf8");
const { code } = await transform(source, { loader: "ts", format: "esm" });
const { thinned, wrapped } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

test("names that begin alike stay apart where there is little room", () => {
  const wanted = [
    ["best over found", "best over\nfound"],
    ["minimal over found", "minimal\nover found"],
    ["minimal over preset", "minimal\nover\npreset"],
    ["eviction_threads_max", "eviction_t\nhreads_max"],
    ["", ""],
  ];
  for (const [name, lines] of wanted) assert.equal(wrapped(name, 10), lines);
  assert.equal(wrapped("minimal over found", 40), "minimal over found");
  assert.equal(wrapped("a b c d e f", 1), "a\nb\nc\n…");
});

test("of many sizes so many have their name that each has room", () => {
  const sizes = ["no gap", "32 KiB", "64 KiB", "128 KiB"];
  assert.deepEqual(thinned(sizes, 8), sizes);
  assert.deepEqual(thinned(sizes, 4), ["no gap", "", "64 KiB", ""]);
});
