// Counts per cell, and the picture of them.

import type { Figure } from "./data";
import { firstAt, KIND_WRITE, type Points } from "./points";
import type { Ramp, Theme } from "./theme";

/** Counts of reads and writes, row by row from the lowest y. */
export interface Density {
  columns: number;
  rows: number;
  reads: Uint32Array;
  writes: Uint32Array;
}

/** What part of the axes is looked at. */
export interface View {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

export function emptyDensity(columns: number, rows: number): Density {
  const cells = columns * rows;
  return { columns, rows, reads: new Uint32Array(cells), writes: new Uint32Array(cells) };
}

/** Reads counts of seven bits a byte (LEB128), reads first. */
export function decodeDensity(bytes: Uint8Array, figure: Figure): Density {
  const density = emptyDensity(figure.x.bins, figure.y.bins);
  let at = 0;
  for (const counts of [density.reads, density.writes]) {
    for (let cell = 0; cell < counts.length; cell++) {
      let weight = 1;
      let byte = bytes[at++]!;
      let count = 0;
      while (byte >= 0x80) {
        count += (byte & 0x7f) * weight;
        weight *= 128;
        byte = bytes[at++]!;
      }
      counts[cell] = count + byte * weight;
    }
  }
  return density;
}

/** Indexes of the points inside `view`, or null when they are more than `limit`. */
export function pointsInside(
  points: Points,
  y: ArrayLike<number>,
  view: View,
  limit: number,
): number[] | null {
  const inside: number[] = [];
  const end = firstAt(points.time, view.x1);
  for (let i = firstAt(points.time, view.x0); i < end; i++) {
    if (y[i]! < view.y0 || y[i]! > view.y1 || Number.isNaN(y[i])) continue;
    if (inside.length === limit) return null;
    inside.push(i);
  }
  return inside;
}

/** Counts the points inside `view` into cells; returns them and how many there are. */
export function countPoints(
  points: Points,
  y: ArrayLike<number>,
  view: View,
  columns: number,
  rows: number,
): { density: Density; total: number } {
  const density = emptyDensity(columns, rows);
  const perX = columns / (view.x1 - view.x0);
  const perY = rows / (view.y1 - view.y0);
  const end = firstAt(points.time, view.x1);
  let total = 0;
  for (let i = firstAt(points.time, view.x0); i < end; i++) {
    const row = Math.floor((y[i]! - view.y0) * perY);
    const column = Math.floor((points.time[i]! - view.x0) * perX);
    if (!(row >= 0 && row < rows) || column >= columns) continue;
    const counts = points.kind[i]! & KIND_WRITE ? density.writes : density.reads;
    const cell = row * columns + column;
    counts[cell] = counts[cell]! + 1;
    total++;
  }
  return { density, total };
}

/**
 * Merges cells until at most `columns` x `rows` remain, so that each is large enough to be seen and
 * none falls between two pixels. By whole factors: uneven ones would paint stripes.
 */
export function coarser(density: Density, columns: number, rows: number): Density {
  const factorX = Math.max(1, Math.ceil(density.columns / columns));
  const factorY = Math.max(1, Math.ceil(density.rows / rows));
  if (factorX === 1 && factorY === 1) return density;
  const merged = emptyDensity(
    Math.ceil(density.columns / factorX),
    Math.ceil(density.rows / factorY),
  );
  for (let row = 0; row < density.rows; row++) {
    const into = Math.floor(row / factorY) * merged.columns;
    for (let column = 0; column < density.columns; column++) {
      const from = row * density.columns + column;
      const to = into + Math.floor(column / factorX);
      merged.reads[to] = merged.reads[to]! + density.reads[from]!;
      merged.writes[to] = merged.writes[to]! + density.writes[from]!;
    }
  }
  return merged;
}

const SHADES = 256;

/** One pixel per cell, highest y on top, shaded by the logarithm of the count. */
export function paint(density: Density, theme: Theme): HTMLCanvasElement {
  const { columns, rows, reads, writes } = density;
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(columns, rows);
  let most = 1;
  for (let cell = 0; cell < reads.length; cell++) {
    most = Math.max(most, reads[cell]! + writes[cell]!);
  }
  const scale = (SHADES - 1) / Math.log(most + 1);
  const readShades = shades(theme.reads);
  const writeShades = shades(theme.writes);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const cell = row * columns + column;
      const total = reads[cell]! + writes[cell]!;
      if (total === 0) continue;
      const shade = Math.round(Math.log(total + 1) * scale) * 3;
      const writeShare = writes[cell]! / total;
      const pixel = ((rows - 1 - row) * columns + column) * 4;
      for (let channel = 0; channel < 3; channel++) {
        const read = readShades[shade + channel]!;
        const write = writeShades[shade + channel]!;
        image.data[pixel + channel] = read + (write - read) * writeShare;
      }
      image.data[pixel + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function shades(ramp: Ramp): Float32Array {
  const out = new Float32Array(SHADES * 3);
  for (let i = 0; i < SHADES; i++) {
    for (let channel = 0; channel < 3; channel++) {
      const [few, many] = [ramp.few[channel]!, ramp.many[channel]!];
      out[i * 3 + channel] = few + ((many - few) * i) / (SHADES - 1);
    }
  }
  return out;
}
