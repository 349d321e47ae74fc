// What the report carries for the script: see report/src/html/{figures,percentiles,points}.rs.

export interface Axis {
  low: number;
  high: number;
  bins: number;
}

export interface Figure {
  x: Axis;
  /** Bytes, or the decimal logarithm of nanoseconds. */
  y: Axis;
  blob: string;
  caption: string;
}

export interface PointBlock {
  blob: string;
  count: number;
  /** Each point stands for this many calls. */
  stride: number;
}

export interface FileFigures {
  label: string;
  offset: Figure;
  latency: Figure;
  points: PointBlock;
}

export interface PhaseFigures {
  time_unit_s: number;
  files: FileFigures[];
}

export interface Percentiles {
  /** 1 / (1 - p). */
  x: number[];
  curves: { phase: number; latency_ns: number[] }[];
}

export interface PageData {
  phases: PhaseFigures[];
  percentiles: Percentiles | null;
}

export function readPageData(): PageData {
  return JSON.parse(elementText("seekscope-data")) as PageData;
}

/** The bytes of a block: base64 of deflated data in an element of that id. */
export async function readBlob(id: string): Promise<Uint8Array> {
  const text = atob(elementText(id));
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

function elementText(id: string): string {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the report lacks its part ${id}`);
  return element.textContent ?? "";
}
