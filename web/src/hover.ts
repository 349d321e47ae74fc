// What a mark under the pointer stands for.

import type uPlot from "uplot";
import type { Drawn, Kind, Marks } from "./chart";
import { formatBytes, formatCount, formatNs } from "./format";
import { KIND_FAILED, KIND_WRITE, type Points } from "./points";
import { Tip } from "./tip";

/** CSS pixels within which a dot counts as pointed at. */
const REACH = 12;

export class Hover {
  private readonly tip: Tip;

  constructor(
    over: HTMLElement,
    private readonly kind: Kind,
    private readonly marks: Marks,
  ) {
    this.tip = new Tip(over);
  }

  hide(): void {
    this.tip.hide();
  }

  /** Shows what lies under the plot's cursor. */
  at(plot: uPlot, drawn: Drawn | null): void {
    const { left, top } = plot.cursor;
    const lines = drawn && left !== undefined && top !== undefined && left >= 0
      ? drawn.kind === "dots" ? this.dotLines(plot, drawn, left, top) : this.cellLines(plot, drawn, left, top)
      : null;
    if (lines) this.tip.show(lines, left!, top!);
    else this.hide();
  }

  private cellLines(
    plot: uPlot,
    drawn: Drawn & { kind: "density" },
    left: number,
    top: number,
  ): string[] | null {
    const { density, view } = drawn;
    const [x, y] = [plot.posToVal(left, "x"), plot.posToVal(top, "y")];
    const column = Math.floor(((x - view.x0) / (view.x1 - view.x0)) * density.columns);
    const row = Math.floor(((y - view.y0) / (view.y1 - view.y0)) * density.rows);
    const cell = row * density.columns + column;
    const [reads, writes] = [density.reads[cell] ?? 0, density.writes[cell] ?? 0];
    if (reads + writes === 0) return null;
    if (this.marks === "leaves") {
      return [`${formatCount(reads)} leaves`, `about leaf ${formatCount(Math.round(x))}, offset ${formatBytes(Math.round(y))}`];
    }
    const counts = [reads && `${formatCount(reads)} reads`, writes && `${formatCount(writes)} writes`];
    const place = this.kind === "offset" ? `offset ${formatBytes(Math.round(y))}` : formatNs(10 ** y);
    return [counts.filter(Boolean).join(", "), `about ${x.toPrecision(4)} s, ${place}`];
  }

  private dotLines(
    plot: uPlot,
    drawn: Drawn & { kind: "dots" },
    left: number,
    top: number,
  ): string[] | null {
    const nearest = nearestDot(plot, drawn, left, top);
    if (nearest === null) return null;
    const { points } = drawn;
    return this.marks === "leaves" ? leafLines(points, nearest) : callLines(points, nearest);
  }
}

/** The index of the point next to that place, if one is within reach. */
function nearestDot(
  plot: uPlot,
  drawn: Drawn & { kind: "dots" },
  left: number,
  top: number,
): number | null {
  const { points, y, indexes } = drawn;
  let nearest: number | null = null;
  let least = REACH ** 2;
  for (const i of indexes) {
    const dx = plot.valToPos(points.time[i]!, "x") - left;
    const dy = plot.valToPos(y[i]!, "y") - top;
    const distance = dx * dx + dy * dy;
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return nearest;
}

function leafLines(points: Points, i: number): string[] {
  return [`leaf ${formatCount(points.time[i]!)} in key order`, ...placeLines(points, i)];
}

function callLines(points: Points, i: number): string[] {
  const kind = points.kind[i]!;
  const word = kind & KIND_WRITE ? "write" : "read";
  return [
    `${word}${kind & KIND_FAILED ? ", failed" : ""}, ${formatNs(points.latency[i]!)}`,
    `at ${points.time[i]!.toFixed(6)} s`,
    ...placeLines(points, i),
  ];
}

function placeLines(points: Points, i: number): string[] {
  const offset = points.offset[i]!;
  return [
    Number.isNaN(offset)
      ? "offset not known"
      : `offset ${formatCount(offset)} (${formatBytes(offset)})`,
    `length ${formatCount(points.length[i]!)} bytes`,
  ];
}
