// What the axes of line and bar charts show: how a value becomes a place on a linear axis, which
// ticks stand there, and what a value is called.

import type uPlot from "uplot";
import {
  bytesAxis,
  depthAxis,
  latencyAxis,
  logBytesAxis,
  logRateAxis,
  percentileAxis,
  rateAxis,
  shareAxis,
  timeAxis,
} from "./axes";
import type { ScaleKind } from "./data";
import { formatBytes, formatCount, formatNs } from "./format";

export interface Scale {
  place(value: number): number;
  /** `name` is what the chart counts or measures, where the scale does not tell. */
  axis(name?: string): uPlot.Axis;
  /** Ends of the axis around these places. */
  range(low: number, high: number): [number, number];
  text(value: number): string;
}

const exactly = (low: number, high: number): [number, number] => [low, Math.max(high, low + 1e-9)];

function wholeDecades(low: number, high: number): [number, number] {
  const from = Math.floor(low);
  return [from, Math.max(Math.ceil(high), from + 1)];
}

/** Positive values begin at zero unless that would waste half of the axis. */
function aroundValues(low: number, high: number): [number, number] {
  const [from, to] = padded(low, high, 0.07);
  return [low >= 0 && low < 0.5 * high ? 0 : from, to];
}

function padded(low: number, high: number, share: number): [number, number] {
  const spread = high - low || Math.abs(high) * share || 1;
  return [low - spread * share, high + spread * share];
}

const log10 = (value: number) => Math.log10(Math.max(value, 1));

function seconds(beginning: string): Scale {
  return {
    place: (value) => value,
    axis: () => timeAxis(beginning),
    range: exactly,
    text: (value) => `${value.toFixed(1)} s`,
  };
}

export const SCALES: Record<ScaleKind, Scale> = {
  percentile: {
    place: log10,
    axis: percentileAxis,
    range: exactly,
    text: (x) => `${Number((100 - 100 / x).toFixed(Math.max(0, Math.floor(Math.log10(x)) - 1)))} %`,
  },
  depth: {
    place: (depth) => Math.log2(depth),
    axis: depthAxis,
    range: (low, high) => [low - 0.2, high + 0.2],
    text: (depth) => `${formatCount(depth)} in flight`,
  },
  latency_ns: { place: log10, axis: latencyAxis, range: wholeDecades, text: formatNs },
  count: {
    place: (count) => count,
    axis: (name = "number") => rateAxis(name),
    range: (_low, high) => [0, high * 1.1 || 1],
    text: formatCount,
  },
  rate: {
    place: (rate) => rate,
    axis: () => rateAxis("per second"),
    range: (_low, high) => [0, high * 1.1 || 1],
    text: formatRate,
  },
  rate_log: { place: log10, axis: () => logRateAxis("per second"), range: wholeDecades, text: formatRate },
  seconds: seconds("run"),
  trace_seconds: seconds("trace"),
  bytes: {
    place: (bytes) => bytes,
    axis: (name = "bytes") => bytesAxis(name),
    range: (_low, high) => [0, high * 1.1 || 1],
    text: formatBytes,
  },
  bytes_log: {
    place: (bytes) => Math.log2(Math.max(bytes, 1)),
    axis: () => logBytesAxis("size"),
    range: exactly,
    text: formatBytes,
  },
  share: {
    place: (share) => share,
    axis: shareAxis,
    range: () => [0, 1],
    text: (share) => `${Number((share * 100).toPrecision(3))} %`,
  },
  value: { place: (value) => value, axis: (name = "") => rateAxis(name), range: aroundValues, text: formatRate },
  value_log: {
    place: (value) => Math.log10(Math.max(value, Number.MIN_VALUE)),
    axis: (name = "") => logRateAxis(name),
    range: (low, high) => padded(low, high, 0.02),
    text: formatRate,
  },
  // The chart has their names, and so their axis.
  groups: { place: (at) => at, axis: () => rateAxis(""), range: (low, high) => [low - 0.5, high + 0.5], text: String },
};

export function formatRate(rate: number): string {
  return formatCount(Number(Math.abs(rate) >= 100 ? rate.toFixed(0) : rate.toPrecision(3)));
}
