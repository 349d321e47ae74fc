// What the report carries for the script: see report/src/html/{charts,figures,points,tracks}.rs.

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
  /** Each point stands for this many calls or leaves. */
  stride: number;
}

export interface FileFigures {
  label: string;
  offset: Figure;
  /** null where the marks are leaf pages. */
  latency: Figure | null;
  points: PointBlock;
}

export interface PhaseFigures {
  time_unit_s: number;
  files: FileFigures[];
}

export type ScaleKind =
  | "percentile"
  | "depth"
  | "count"
  | "latency_ns"
  | "rate"
  | "rate_log"
  | "seconds"
  | "trace_seconds"
  | "bytes"
  | "bytes_log"
  | "share"
  | "value"
  | "value_log"
  | "groups";

export type Shape = "dot" | "square" | "plus" | "triangle" | "diamond" | "cross";

export interface Line {
  label: string;
  colour: number;
  dashed: boolean;
  /** One per x or group; null where nothing is known. */
  values: (number | null)[];
  /** Index of the value to mark. */
  knee: number | null;
  /** Ends of each value's interval: whiskers of a bar or a mark, a band around a line. */
  intervals?: ([number, number] | null)[];
  /** Values are marked, and no line leads from one to the next. */
  shape?: Shape;
  /** What to say of each value in place of label and number. */
  notes?: string[];
}

/** Something that happened at one place of the x axis. */
export interface Mark {
  x: number;
  label: string;
}

export interface LineData {
  /** Of the figure's element. */
  id: string;
  x: ScaleKind;
  y: ScaleKind;
  /** No line leads from one value to the next. */
  dots: boolean;
  xs: number[];
  lines: Line[];
  marks: Mark[];
  /** What the axes count or measure, where their kind does not tell. */
  x_name?: string;
  y_name?: string;
  /** What stands at each whole number of an axis of groups. */
  groups?: string[];
}

/** Latencies over time: seconds since the run began against the decimal logarithm of ns. */
export interface HeatData {
  id: string;
  x: Axis;
  y: Axis;
  blob: string;
}

export interface BarData {
  id: string;
  y: ScaleKind;
  groups: string[];
  /** Of what the groups are sizes, in rising order; absent where they are names. */
  x_name?: string;
  y_name?: string;
  series: Line[];
}

/** A stretch of time in which something went on. */
export interface Band {
  from: number;
  to: number;
  label: string;
}

/** Figures that share an axis of seconds since the run began. */
export interface TrackGroup {
  id: string;
  low: number;
  high: number;
  bands: Band[];
  marks: Mark[];
  tracks: LineData[];
}

export interface PageData {
  phases: PhaseFigures[];
  lines: LineData[];
  bars: BarData[];
  heats: HeatData[];
  tracks: TrackGroup[];
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
