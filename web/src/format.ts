// Numbers for people, as seekscope_run::units has them.

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function threeDigits(value: number): string {
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

export function formatBytes(bytes: number): string {
  const unit = byteUnit(bytes);
  return unit === 0 ? `${Math.round(bytes)} B` : `${threeDigits(bytes / 1024 ** unit)} ${BYTE_UNITS[unit]}`;
}

/** A tick of a logarithmic axis of bytes: no digits that say nothing. */
export function formatBytesTick(bytes: number): string {
  const unit = byteUnit(bytes);
  return `${Number((bytes / 1024 ** unit).toPrecision(4))} ${BYTE_UNITS[unit]}`;
}

function byteUnit(bytes: number): number {
  let unit = 0;
  while (bytes >= 999.5 * 1024 ** unit && unit + 1 < BYTE_UNITS.length) unit++;
  return unit;
}

/** Labels of evenly spaced offsets, all in the unit of the largest and with the digits they need. */
export function byteLabels(values: number[], step: number): string[] {
  const unit = byteUnit(Math.max(...values, 1));
  const size = 1024 ** unit;
  let digits = 0;
  while (digits < 4 && !Number.isInteger((step / size) * 10 ** digits)) digits++;
  return values.map((value) => `${(value / size).toFixed(digits)} ${BYTE_UNITS[unit]}`);
}

export function formatNs(ns: number): string {
  if (ns < 999.5) return `${Math.round(ns)} ns`;
  if (ns < 999_500) return `${threeDigits(ns / 1e3)} µs`;
  if (ns < 999_500_000) return `${threeDigits(ns / 1e6)} ms`;
  return `${threeDigits(ns / 1e9)} s`;
}

/** A tick of a logarithmic latency axis: no digits that say nothing. */
export function formatNsTick(ns: number): string {
  const units: [number, string][] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  const [size, name] = units.filter(([least]) => ns >= least * 0.9995).pop() ?? [1, "ns"];
  return `${Number((ns / size).toPrecision(4))} ${name}`;
}

/** A number that need not be whole, as the report's tables have it. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return value.toFixed(0);
  if (size >= 0.1) return value.toFixed(size >= 10 ? 1 : 2);
  return size >= 0.001 ? value.toFixed(4) : value.toExponential(2);
}

export function formatCount(count: number): string {
  const [whole, digits] = String(count).split(".");
  const grouped = whole!.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return digits === undefined ? grouped : `${grouped}.${digits}`;
}

export function formatSeconds(seconds: number, step: number): string {
  // Steps such as 0.25 need a digit more than their size says.
  let digits = 0;
  while (digits < 9 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits++;
  return seconds.toFixed(digits);
}

/** 1 -> "0 %", 10 -> "90 %", 1000 -> "99.9 %". */
export function formatPercentile(decades: number): string {
  const digits = Math.max(0, Math.round(decades) - 2);
  return `${(100 - 100 / 10 ** decades).toFixed(digits)} %`;
}
