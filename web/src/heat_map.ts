// Latencies over time as a density: a picture that is drawn whole.

import uPlot from "uplot";
import { latencyAxis, timeAxis } from "./axes";
import { readBlob, type Figure, type HeatData } from "./data";
import { coarser, decodeDensity, paint, type Density } from "./density";
import { formatCount, formatNs } from "./format";
import { smallPlot, type Drawing } from "./small_plot";
import { theme } from "./theme";

/** CSS pixels a cell takes at least. */
const CELL_SIZE = 2;

export async function heatMap(root: HTMLElement, data: HeatData): Promise<Drawing> {
  const figure: Figure = { ...data, caption: "" };
  const grid = decodeDensity(await readBlob(data.blob), figure);
  const width = (data.x.high - data.x.low) / grid.columns;
  const middles = Array.from({ length: grid.columns }, (_, i) => data.x.low + (i + 0.5) * width);
  return smallPlot(root, {
    x: [data.x.low, data.x.high],
    y: [data.y.low, data.y.high],
    axes: [timeAxis("run"), latencyAxis()],
    series: [{ paths: () => null, points: { show: false } }],
    data: [middles, middles.map(() => null)],
    draw: (plot) => {
      drawGrid(plot, data, grid);
      root.dataset.drawn = "density";
    },
    tip: (index) => columnTip(data, grid, index, middles[index]!),
  });
}

function drawGrid(plot: uPlot, data: HeatData, grid: Density): void {
  const columns = Math.max(1, Math.floor(plot.over.clientWidth / CELL_SIZE));
  const rows = Math.max(1, Math.floor(plot.over.clientHeight / CELL_SIZE));
  const picture = paint(coarser(grid, columns, rows), theme());
  const left = plot.valToPos(data.x.low, "x", true);
  const right = plot.valToPos(data.x.high, "x", true);
  const top = plot.valToPos(data.y.high, "y", true);
  const bottom = plot.valToPos(data.y.low, "y", true);
  plot.ctx.save();
  plot.ctx.imageSmoothingEnabled = false;
  plot.ctx.drawImage(picture, left, top, right - left, bottom - top);
  plot.ctx.restore();
}

/** How many there were in a column, and between which latencies. */
function columnTip(data: HeatData, grid: Density, column: number, second: number): string[] {
  let total = 0;
  let lowest = grid.rows;
  let highest = -1;
  for (let row = 0; row < grid.rows; row++) {
    const count = grid.reads[row * grid.columns + column]!;
    if (count === 0) continue;
    total += count;
    lowest = Math.min(lowest, row);
    highest = row;
  }
  if (total === 0) return [];
  const ns = (row: number) => 10 ** (data.y.low + (row * (data.y.high - data.y.low)) / grid.rows);
  return [
    `${second.toFixed(1)} s`,
    `${formatCount(total)} requests`,
    `${formatNs(ns(lowest))} to ${formatNs(ns(highest + 1))}`,
  ];
}
