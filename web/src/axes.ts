// Axes: where ticks stand and what they say. Logarithmic axes are linear ones over logarithms, so
// that zooming, drawing and counting need no second case.

import type uPlot from "uplot";
import { byteLabels, formatBytesTick, formatCount, formatNsTick, formatPercentile, formatSeconds } from "./format";
import { thinned, wrapped } from "./names";
import { theme } from "./theme";

const FONT = "12px system-ui, sans-serif";

function axis(label: string, options: uPlot.Axis): uPlot.Axis {
  return {
    label,
    labelFont: FONT,
    labelSize: 18,
    font: FONT,
    stroke: () => theme().text,
    grid: { stroke: () => theme().grid, width: 1 },
    ticks: { stroke: () => theme().grid, width: 1, size: 5 },
    ...options,
  };
}

export function timeAxis(beginning: string): uPlot.Axis {
  return axis(`seconds since the ${beginning} began`, {
    size: 34,
    space: 70,
    values: (_u, splits, _axis, _space, step) => splits.map((s) => formatSeconds(s, step)),
  });
}

/** The same axis where it lies under the figure. */
export function below(axis: uPlot.Axis): uPlot.Axis {
  return { ...axis, size: 34, space: 70 };
}

/** Leaf pages in key order. */
export function leafAxis(): uPlot.Axis {
  return axis("leaf pages in key order", {
    size: 34,
    space: 70,
    values: (_u, splits) => splits.map((n) => (Number.isInteger(n) ? formatCount(n) : "")),
  });
}

const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Bytes in steps of powers of two. */
export function bytesAxis(label: string): uPlot.Axis {
  return axis(label, {
    size: 72,
    space: 36,
    incrs: BYTE_STEPS,
    values: (_u, splits, _axis, _space, step) => byteLabels(splits, step),
  });
}

/** Over logarithms to base 2. */
export function logBytesAxis(label: string): uPlot.Axis {
  return axis(label, {
    size: 34,
    space: 70,
    splits: (_u, _index, low, high) => decades(low, high),
    values: (_u, splits) => splits.map((log) => formatBytesTick(2 ** log)),
  });
}

/** 0 to 1 as 0 % to 100 %. */
export function shareAxis(): uPlot.Axis {
  return axis("share", {
    size: 56,
    space: 36,
    values: (_u, splits) => splits.map((share) => `${Number((share * 100).toPrecision(4))} %`),
  });
}

export function latencyAxis(): uPlot.Axis {
  return axis("latency", {
    size: 72,
    splits: (_u, _index, low, high) => logTicks(low, high),
    values: (_u, splits) => splits.map((log) => formatNsTick(10 ** log)),
  });
}

export function percentileAxis(): uPlot.Axis {
  return axis("percentile", {
    size: 34,
    splits: (_u, _index, low, high) => decades(low, high),
    values: (_u, splits) => splits.map(formatPercentile),
  });
}

/** Over logarithms to base 2. */
export function depthAxis(): uPlot.Axis {
  return axis("requests in flight", {
    size: 34,
    splits: (_u, _index, low, high) => decades(low, high),
    values: (_u, splits) => splits.map((log) => formatCount(2 ** log)),
  });
}

export function rateAxis(label: string): uPlot.Axis {
  return axis(label, {
    size: 72,
    space: 36,
    values: (_u, splits) => splits.map((rate) => formatCount(Number(rate.toPrecision(6)))),
  });
}

/** Over decimal logarithms. */
export function logRateAxis(label: string): uPlot.Axis {
  return axis(label, {
    size: 72,
    splits: (_u, _index, low, high) => logTicks(low, high),
    values: (_u, splits) => splits.map((log) => formatCount(Number((10 ** log).toPrecision(4)))),
  });
}

const CHARACTER_WIDTH = 7;
/** What the other axis and the margin take, about. */
const BESIDE_PLOT = 115;
const LINE_HEIGHT = 18;

/**
 * Names under the middle of each group, on as many lines as they need. Where the groups are sizes of what `label`
 * says, some stay without a name if there is no room for all: their neighbours tell what they are.
 */
export function groupAxis(groups: string[], label = ""): uPlot.Axis {
  const names = (u: uPlot) => {
    // Before it is laid out for the first time it has no width.
    const width = (u.width || 0) - BESIDE_PLOT;
    const room = Math.max(Math.floor(width / groups.length / CHARACTER_WIDTH), 1);
    return label === "" ? groups.map((name) => wrapped(name, room)) : thinned(groups, room);
  };
  const lines = (u: uPlot) => Math.max(...names(u).map((name) => name.split("\n").length));
  return {
    ...axis(label, {
      size: (u) => 12 + LINE_HEIGHT * lines(u),
      splits: () => groups.map((_, i) => i),
      values: names,
      grid: { show: false },
    }),
    ...(label === "" ? { labelSize: 0 } : {}),
  };
}

const TICKS_MIN = 3;
const TICKS_MAX = 9;

/** Whole decades; when these are too few, 1-2-5 in each; when zoomed in further, even steps. */
function logTicks(low: number, high: number): number[] {
  const whole = decades(low, high);
  if (whole.length >= TICKS_MIN) return whole;
  const finer: number[] = [];
  for (let decade = Math.floor(low); decade <= high; decade++) {
    for (const digit of [1, 2, 5]) finer.push(decade + Math.log10(digit));
  }
  const seen = finer.filter((tick) => tick >= low && tick <= high);
  if (seen.length >= TICKS_MIN) return seen;
  const [from, to] = [10 ** low, 10 ** high];
  const power = 10 ** Math.floor(Math.log10((to - from) / TICKS_MIN));
  const step = [5, 2, 1].map((n) => n * power).find((n) => (to - from) / n >= TICKS_MIN) ?? power;
  const even: number[] = [];
  for (let ns = Math.ceil(from / step) * step; ns <= to && even.length < 20; ns += step) {
    even.push(Math.log10(ns));
  }
  return even;
}

/** Whole numbers, at most TICKS_MAX of them. */
function decades(low: number, high: number): number[] {
  const all: number[] = [];
  for (let decade = Math.ceil(low - 1e-9); decade <= high + 1e-9; decade++) all.push(decade);
  const step = Math.ceil(all.length / TICKS_MAX);
  return all.filter((_, i) => i % step === 0);
}
