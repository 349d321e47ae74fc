// Groups of bars with their values on top.

import uPlot from "uplot";
import { groupAxis } from "./axes";
import type { BarData, Line } from "./data";
import { formatNumber } from "./format";
import { SCALES } from "./scales";
import { whisker } from "./shapes";
import { smallPlot, type Drawing } from "./small_plot";
import { theme } from "./theme";

/** Share of a group's place that its bars take. */
const FILLED = 0.7;
/** CSS pixels that a bar is high at least, unless it stands for nothing. */
const BAR_MIN = 2;

/** What a bar is called: counts are means here, and need not be whole. */
function nameOf(data: BarData, value: number): string {
  return data.y === "count" ? formatNumber(value) : SCALES[data.y].text(value);
}

export function barChart(root: HTMLElement, data: BarData): Drawing {
  const y = SCALES[data.y];
  const last = data.groups.length - 1;
  const unit = data.y === "rate" ? " per second" : "";
  const range = (s: Line, index: number) => {
    const ends = s.intervals?.[index];
    return ends ? ` (${nameOf(data, ends[0])} to ${nameOf(data, ends[1])})` : "";
  };
  const values = data.series.map((s) => s.values.map((v) => (v === null ? null : y.place(v))));
  const ends = data.series.flatMap((s) => s.intervals ?? []).map((ends) => ends?.[1] ?? 0);
  const places = [...values.flat().filter((place) => place !== null), ...ends.map(y.place)];
  return smallPlot(root, {
    x: [-0.5, last + 0.5],
    y: y.range(0, Math.max(...places)),
    axes: [groupAxis(data.groups, data.x_name), y.axis(data.y_name)],
    // Drawn below: uPlot's own bars do not stand side by side.
    series: data.series.map(() => ({ paths: () => null, points: { show: false } })),
    data: [data.groups.map((_, i) => i), ...values],
    draw: (plot) => drawBars(plot, data),
    tip: (index) => {
      const known = data.series.filter((s) => s.values[index] != null);
      return [
        data.groups[index]!,
        ...known.map((s) => `${s.label}: ${nameOf(data, s.values[index]!)}${unit}${range(s, index)}`),
      ];
    },
  });
}

function drawBars(plot: uPlot, data: BarData): void {
  const { ctx } = plot;
  const y = SCALES[data.y];
  const width = FILLED / data.series.length;
  const base = plot.valToPos(0, "y", true);
  ctx.save();
  ctx.textAlign = "center";
  ctx.font = `${11 * uPlot.pxRatio}px system-ui, sans-serif`;
  data.series.forEach((series, slot) => {
    series.values.forEach((value, group) => {
      if (value === null) return;
      const from = group - FILLED / 2 + slot * width;
      const left = plot.valToPos(from, "x", true);
      const right = plot.valToPos(from + width * 0.94, "x", true);
      // Even one among thousands must be visible.
      const least = value > 0 ? BAR_MIN * uPlot.pxRatio : 0;
      const top = Math.min(plot.valToPos(y.place(value), "y", true), base - least);
      ctx.fillStyle = theme().lines[series.colour]!;
      ctx.fillRect(left, top, right - left, base - top);
      ctx.fillStyle = ctx.strokeStyle = theme().text;
      const ends = series.intervals?.[group];
      const highest = ends ? plot.valToPos(y.place(ends[1]), "y", true) : top;
      const name = nameOf(data, value);
      // There may be dozens of sizes, and values would cover one another.
      const isTold = data.x_name === undefined || ctx.measureText(name).width <= right - left;
      if (isTold) ctx.fillText(name, (left + right) / 2, Math.min(top, highest) - 4 * uPlot.pxRatio);
      if (!ends) return;
      ctx.lineWidth = 1.5 * uPlot.pxRatio;
      ctx.beginPath();
      whisker(ctx, (left + right) / 2, highest, plot.valToPos(y.place(ends[0]), "y", true));
      ctx.stroke();
    });
  });
  ctx.restore();
}
