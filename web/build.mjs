// Bundles the page into page.js and page.css, in the folder named as argument (default: dist).
import { readFileSync } from "node:fs";
import { build } from "esbuild";

// The licence asks to stand in every copy, and each report is one.
const licence = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();

await build({
  entryPoints: { page: "src/page.ts" },
  outdir: process.argv[2] ?? "dist",
  bundle: true,
  minify: true,
  format: "iife",
  // DecompressionStream("deflate-raw") came with these.
  target: ["chrome103", "firefox113", "safari16.4"],
  banner: { js: `/* Includes uPlot.\n\n${licence}\n*/` },
  logLevel: "warning",
});
