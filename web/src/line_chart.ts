// Lines over one axis: rates and latencies by depth, by percentile, over time.

import uPlot from "uplot";
import { below, groupAxis } from "./axes";
import type { Line, LineData, Mark } from "./data";
import { SCALES } from "./scales";
import { drawBand, drawShapes, drawWhiskers } from "./shapes";
import { smallPlot, type Drawing } from "./small_plot";
import { theme } from "./theme";

/** Up to so many values each has a mark of its own. */
const POINTS_MAX = 40;
const KNEE_RADIUS = 7;

export function lineChart(root: HTMLElement, data: LineData): Drawing {
  const [x, y] = [SCALES[data.x], SCALES[data.y]];
  const xs = data.xs.map(x.place);
  const { values, lowest, highest } = valuePlaces(data);
  const xRange = x.range(xs[0]!, xs[xs.length - 1]!);
  return smallPlot(root, {
    x: data.groups ? SCALES.groups.range(0, data.groups.length - 1) : xRange,
    y: y.range(lowest, highest),
    axes: [
      data.groups ? groupAxis(data.groups) : data.x_name ? below(x.axis(data.x_name)) : x.axis(),
      y.axis(data.y_name),
    ],
    series: data.lines.map((line) => series(line, data)),
    data: [xs, ...values],
    draw: (plot) => {
      drawMarks(plot, data.marks, x.place);
      data.lines.forEach((line, i) => {
        const ends = line.intervals?.map((pair) => (pair ? ([y.place(pair[0]), y.place(pair[1])] as const) : null));
        if (ends) (line.shape ? drawWhiskers : drawBand)(plot, line, xs, ends);
        if (line.shape) drawShapes(plot, line, xs, values[i]!);
        markKnee(plot, line, xs, values[i]!);
      });
    },
    tip: (index) => {
      // Several values may share a position.
      const here = data.xs.flatMap((at, i) => (at === data.xs[index] ? [i] : []));
      const said = here.flatMap((i) =>
        data.lines
          .filter((line) => line.values[i] != null)
          .map((line) => line.notes?.[i] || `${line.label}: ${y.text(line.values[i]!)}`),
      );
      if (said.length === 0) return [];
      const place = data.groups ? data.groups[Math.floor(data.xs[index]!)]! : x.text(data.xs[index]!);
      return [data.x_name ? `${data.x_name} ${place}` : place, ...said, ...marksNear(data, index)];
    },
  });
}

/** Values as places on the axis, and the lowest and highest of them. */
export function valuePlaces(data: LineData): { values: (number | null)[][]; lowest: number; highest: number } {
  const y = SCALES[data.y];
  const values = data.lines.map((line) => line.values.map((v) => (v === null ? null : y.place(v))));
  const ends = data.lines.flatMap((line) => line.intervals ?? []).flatMap((pair) => pair?.map(y.place) ?? []);
  const places = [...values.flat().filter((place) => place !== null), ...ends];
  return { values, lowest: least(places), highest: most(places) };
}

// Spreading a long series over the arguments of Math.min would overflow the stack.
const least = (all: number[]) => all.reduce((a, b) => Math.min(a, b), Infinity);
const most = (all: number[]) => all.reduce((a, b) => Math.max(a, b), -Infinity);

export function series(line: Line, data: LineData): uPlot.Series {
  const colour = () => theme().lines[line.colour]!;
  // Beside shapes a point would be taken for one.
  const isShaped = data.lines.some((other) => other.shape);
  const each = data.dots || (data.xs.length <= POINTS_MAX && !isShaped);
  // A value between two gaps has no line to be seen by.
  const alone = line.values.flatMap((value, i) =>
    value != null && line.values[i - 1] == null && line.values[i + 1] == null ? [i] : [],
  );
  return {
    stroke: colour,
    width: 2,
    dash: line.dashed ? [7, 4] : [],
    ...(data.dots || line.shape ? { paths: () => null } : {}),
    // What is expected goes on where only something else is known.
    spanGaps: line.intervals !== undefined,
    points: {
      show: !isShaped && (each || alone.length > 0),
      size: data.dots ? 4 : 5,
      stroke: colour,
      fill: colour,
      ...(each || isShaped ? {} : { filter: () => alone }),
    },
  };
}

/** What happened between this value's neighbours. */
function marksNear({ marks, xs }: LineData, index: number): string[] {
  const from = xs[index - 1] ?? -Infinity;
  const to = xs[index + 1] ?? Infinity;
  return marks.filter(({ x }) => x > from && x < to).map(({ label }) => label);
}

/** Dashed lines across the figure, with what they stand for where there is room. */
export function drawMarks(plot: uPlot, marks: Mark[], place: (x: number) => number): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = `${10 * uPlot.pxRatio}px system-ui, sans-serif`;
  ctx.strokeStyle = ctx.fillStyle = theme().text;
  ctx.globalAlpha = 0.6;
  ctx.setLineDash([3 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
  let free = -Infinity;
  for (const { x, label } of marks) {
    const left = Math.round(plot.valToPos(place(x), "x", true));
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(label).width;
    if (label === "") continue;
    if (left < free || left + width > bbox.left + bbox.width) continue;
    ctx.fillText(label, left + 3 * uPlot.pxRatio, bbox.top + 10 * uPlot.pxRatio);
    free = left + width + 8 * uPlot.pxRatio;
  }
  ctx.restore();
}

/** A ring; the caption says what it means. */
function markKnee(plot: uPlot, line: Line, xs: number[], places: (number | null)[]): void {
  const place = line.knee === null ? null : places[line.knee];
  if (place == null) return;
  const { ctx } = plot;
  const left = plot.valToPos(xs[line.knee!]!, "x", true);
  const top = plot.valToPos(place, "y", true);
  ctx.save();
  ctx.setLineDash([]);
  ctx.strokeStyle = ctx.fillStyle = theme().lines[line.colour]!;
  ctx.lineWidth = 2 * uPlot.pxRatio;
  ctx.beginPath();
  ctx.arc(left, top, KNEE_RADIUS * uPlot.pxRatio, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.restore();
}
