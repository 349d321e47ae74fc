// Colours live in page.css, so that light, dark and print are decided in one place.

export type Rgb = [number, number, number];

/** From one call to the most calls in a cell. */
export interface Ramp {
  few: Rgb;
  many: Rgb;
}

export interface Theme {
  reads: Ramp;
  writes: Ramp;
  readDot: string;
  writeDot: string;
  text: string;
  paper: string;
  grid: string;
  lines: string[];
}

const LINES = 8;
let cached: Theme | null = null;

export function theme(): Theme {
  cached ??= readTheme();
  return cached;
}

/** Calls `redraw` whenever the colours may have changed. */
export function onThemeChange(redraw: () => void): void {
  const changed = () => {
    cached = null;
    redraw();
  };
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", changed);
  }
}

function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const rgb = (name: string): Rgb => {
    const hex = Number.parseInt(read(name).slice(1), 16);
    return [hex >> 16, (hex >> 8) & 255, hex & 255];
  };
  return {
    reads: { few: rgb("--reads-few"), many: rgb("--reads-many") },
    writes: { few: rgb("--writes-few"), many: rgb("--writes-many") },
    readDot: read("--reads"),
    writeDot: read("--writes"),
    text: read("--muted"),
    paper: read("--paper"),
    grid: read("--rule"),
    lines: Array.from({ length: LINES }, (_, i) => read(`--line-${i}`)),
  };
}
