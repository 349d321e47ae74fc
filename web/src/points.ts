// The calls of one file in one phase, as columns. Written by report/src/html/points.rs.

import { readBlob, type PointBlock } from "./data";

const OFFSET_UNKNOWN = 2 ** 48 - 1;
export const KIND_WRITE = 1;
export const KIND_FAILED = 2;

export interface Points {
  count: number;
  /** Seconds since the phase began, ascending. */
  time: Float64Array;
  /** Bytes; NaN where not known. */
  offset: Float64Array;
  length: Uint32Array;
  /** Nanoseconds. */
  latency: Float32Array;
  /** Decimal logarithm of the latency, the y of its figure. */
  latencyLog: Float32Array;
  /** Bits KIND_*. */
  kind: Uint8Array;
}

export async function loadPoints(block: PointBlock, timeUnit: number): Promise<Points> {
  return decodePoints(await readBlob(block.blob), block.count, timeUnit);
}

export function decodePoints(bytes: Uint8Array, count: number, timeUnit: number): Points {
  const planes = new PlaneReader(bytes, count);
  const time = planes.column(4, new Float64Array(count));
  const offset = planes.column(6, new Float64Array(count));
  const length = planes.column(4, new Uint32Array(count));
  const latencyBits = planes.column(4, new Uint32Array(count));
  const kind = planes.column(1, new Uint8Array(count));
  sumUp(time, 2 ** 32);
  sumUp(offset, 2 ** 48);
  const latency = new Float32Array(latencyBits.buffer);
  const latencyLog = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    time[i] = time[i]! * timeUnit;
    if (offset[i] === OFFSET_UNKNOWN) offset[i] = NaN;
    latencyLog[i] = Math.log10(Math.max(latency[i]!, 1));
  }
  return { count, time, offset, length, latency, latencyLog, kind };
}

type Column = Float64Array | Uint32Array | Uint8Array;

class PlaneReader {
  private at = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly count: number,
  ) {}

  /** Reads a column of `width` planes, lowest bytes first. */
  column<T extends Column>(width: number, into: T): T {
    for (let plane = 0; plane < width; plane++) {
      const weight = 2 ** (8 * plane);
      const start = this.at;
      for (let i = 0; i < this.count; i++) into[i] = into[i]! + this.bytes[start + i]! * weight;
      this.at += this.count;
    }
    return into;
  }
}

/** Differences to values; doubles are exact far beyond 2^48. */
function sumUp(column: Float64Array, modulus: number): void {
  let last = 0;
  for (let i = 0; i < column.length; i++) {
    last += column[i]!;
    if (last >= modulus) last -= modulus;
    column[i] = last;
  }
}

/** The first index whose time is at least `seconds`. */
export function firstAt(time: Float64Array, seconds: number): number {
  let low = 0;
  let high = time.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time[middle]! < seconds) low = middle + 1;
    else high = middle;
  }
  return low;
}
