// Marks of single values, their intervals, and bands around lines.

import uPlot from "uplot";
import type { Line, Shape } from "./data";
import { theme } from "./theme";

/** CSS pixels from the middle of a mark to its edge. */
const RADIUS = 4.5;
const BAND_OPACITY = 0.16;

type Ends = readonly (readonly [number, number] | null)[];

/** The outline of each shape around (0, 0), in radii; an open one is not filled. */
const OUTLINES: Record<Exclude<Shape, "dot">, { strokes: [number, number][][]; open?: boolean }> = {
  square: { strokes: [[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9], [-0.9, -0.9]]] },
  plus: { strokes: [[[-1.2, 0], [1.2, 0]], [[0, -1.2], [0, 1.2]]] },
  triangle: { strokes: [[[-1.1, -0.8], [1.1, -0.8], [0, 1.1], [-1.1, -0.8]]], open: true },
  diamond: { strokes: [[[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0], [0, -1.3]]], open: true },
  cross: { strokes: [[[-1, -1], [1, 1]], [[-1, 1], [1, -1]]] },
};

export function drawShapes(plot: uPlot, line: Line, xs: number[], places: (number | null)[]): void {
  const { ctx } = plot;
  const radius = RADIUS * uPlot.pxRatio;
  ctx.save();
  // The plot leaves the dashes of the line that it drew last.
  ctx.setLineDash([]);
  ctx.strokeStyle = theme().lines[line.colour]!;
  ctx.lineWidth = 1.5 * uPlot.pxRatio;
  places.forEach((place, i) => {
    if (place === null) return;
    const x = plot.valToPos(xs[i]!, "x", true);
    const y = plot.valToPos(place, "y", true);
    ctx.beginPath();
    if (line.shape === "dot") ctx.arc(x, y, radius, 0, 2 * Math.PI);
    const outline = line.shape && line.shape !== "dot" ? OUTLINES[line.shape] : null;
    for (const stroke of outline?.strokes ?? []) {
      stroke.forEach(([dx, dy], step) => {
        if (step === 0) ctx.moveTo(x + dx * radius, y + dy * radius);
        else ctx.lineTo(x + dx * radius, y + dy * radius);
      });
    }
    ctx.fillStyle = outline?.open ? theme().paper : theme().lines[line.colour]!;
    ctx.fill();
    ctx.stroke();
  });
  ctx.restore();
}

/** From end to end of each interval, with a stroke across both. */
export function drawWhiskers(plot: uPlot, line: Line, xs: number[], ends: Ends): void {
  const { ctx } = plot;
  ctx.save();
  ctx.setLineDash([]);
  ctx.strokeStyle = theme().lines[line.colour]!;
  ctx.lineWidth = 2 * uPlot.pxRatio;
  ctx.beginPath();
  ends.forEach((pair, i) => {
    if (!pair) return;
    const [low, high] = pair;
    whisker(ctx, plot.valToPos(xs[i]!, "x", true), plot.valToPos(high, "y", true), plot.valToPos(low, "y", true));
  });
  ctx.stroke();
  ctx.restore();
}

/** Adds one to the path. */
export function whisker(ctx: CanvasRenderingContext2D, x: number, top: number, bottom: number): void {
  const half = 4 * uPlot.pxRatio;
  ctx.moveTo(x, top);
  ctx.lineTo(x, bottom);
  for (const end of [top, bottom]) {
    ctx.moveTo(x - half, end);
    ctx.lineTo(x + half, end);
  }
}

/** Shades what lies between the ends, from the first known to the last. */
export function drawBand(plot: uPlot, line: Line, xs: number[], ends: Ends): void {
  const known = ends.flatMap((pair, i) => (pair ? [{ x: plot.valToPos(xs[i]!, "x", true), pair }] : []));
  if (known.length < 2) return;
  const { ctx } = plot;
  ctx.save();
  ctx.globalAlpha = BAND_OPACITY;
  ctx.fillStyle = theme().lines[line.colour]!;
  ctx.beginPath();
  for (const { x, pair } of known) ctx.lineTo(x, plot.valToPos(pair[1], "y", true));
  for (const { x, pair } of known.reverse()) ctx.lineTo(x, plot.valToPos(pair[0], "y", true));
  ctx.fill();
  ctx.restore();
}
