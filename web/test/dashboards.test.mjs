// The dashboards of deploy/grafana, against the types that Grafana publishes.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "../../deploy/grafana");
const compiler = join(here, "../node_modules/.bin/tsc");
const names = readdirSync(folder).filter((name) => name.endsWith(".json"));

const read = (name) => readFileSync(join(folder, name), "utf8");

/**
 * What the compiler says of these texts of dashboards; nothing if they are right. They are checked as they would be if
 * they stood in a program, where a property that the type does not have is an error.
 */
function complaints(texts) {
  const work = mkdtempSync(join(here, "dashboards-"));
  try {
    const files = texts.map((text, n) => {
      const file = join(work, `${n}.ts`);
      const program = `import type { OurDashboard } from "../grafana";\nexport const it: OurDashboard = ${text};\n`;
      writeFileSync(file, program);
      return file;
    });
    const strict = "--noEmit --strict --exactOptionalPropertyTypes --skipLibCheck --ignoreConfig".split(" ");
    const modules = "--module esnext --moduleResolution bundler --types".split(" ");
    const ran = spawnSync(compiler, [...strict, ...modules, "", ...files], { encoding: "utf8" });
    assert.equal(ran.error, undefined, "npm ci installs the compiler");
    return ran.status === 0 ? "" : `${ran.stdout}${ran.stderr}`;
  } finally {
    rmSync(work, { recursive: true });
  }
}

describe("the dashboards", () => {
  test("are three, and are what Grafana's types allow", () => {
    assert.deepEqual(names.sort(), ["collection.json", "fleet.json", "server.json"]);
    assert.equal(complaints(names.map(read)), "");
  });

  test("are formatted alike", () => {
    for (const name of names) {
      assert.equal(read(name), `${JSON.stringify(JSON.parse(read(name)), null, 2)}\n`, name);
    }
  });

  test("a broken one is found", () => {
    const good = read("server.json");
    const changes = [
      ['"type": "timeseries"', '"type": "timeserie"'],
      ['"gridPos"', '"gridpos"'],
      ['"axisWidth": 80', '"axiswidth": 80'],
      ['"placement": "right"', '"placement": "east"'],
      ['"mode": "multi"', '"mode": "many"'],
      ['"expr":', '"expression":'],
      ['"graphTooltip": 1', '"graphTooltip": 7'],
      ['"w": 24', '"w": "24"'],
      ['"fillOpacity": 20', '"fillOpacity": "20"'],
      ['"schemaVersion": 39', '"schemaversion": 39'],
    ];
    for (const [from, to] of changes) {
      assert.ok(good.includes(from), from);
      assert.notEqual(complaints([good.replace(from, to)]), "", to);
    }
  });
});
