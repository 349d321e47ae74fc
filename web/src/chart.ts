// One figure: a density picture that turns into single calls or leaves when zoomed in.

import uPlot from "uplot";
import { bytesAxis, latencyAxis, leafAxis, timeAxis } from "./axes";
import { addButton } from "./controls";
import { readBlob, type Figure, type FileFigures } from "./data";
import {
  coarser,
  countPoints,
  decodeDensity,
  paint,
  pointsInside,
  type Density,
  type View,
} from "./density";
import { formatCount } from "./format";
import { Hover } from "./hover";
import { KIND_WRITE, type Points } from "./points";
import { theme } from "./theme";

/** Fewer points than this are drawn one by one. */
const DOTS_MAX = 20_000;
/** CSS pixels a cell of a density picture takes at least. */
const CELL_SIZE = 2;
const HEIGHT = 250;
/** No zoom beyond this share of the whole axis: what lies between two numbers is not data. */
const SPAN_MIN = 1e-7;

export type Kind = "offset" | "latency";

/** What the marks of a figure are. Leaves stand in key order where calls stand in order of time. */
export type Marks = "calls" | "leaves";

/** What is on the screen. */
export type Drawn =
  | { kind: "dots"; points: Points; y: ArrayLike<number>; indexes: number[] }
  | { kind: "density"; density: Density; view: View; picture: HTMLCanvasElement };

export class Chart {
  private readonly plot: uPlot;
  private readonly status = document.createElement("output");
  private readonly hover: Hover;
  private readonly marks: Marks;
  private file: FileFigures;
  private figure: Figure;
  private grid: Density | null = null;
  private points: Points | null = null;
  private view: View;
  private drawn: Drawn | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly kind: Kind,
    file: FileFigures,
    private readonly loadPoints: (file: FileFigures) => Promise<Points>,
  ) {
    this.file = file;
    this.figure = figureOf(file, kind);
    this.marks = root.closest<HTMLElement>("article.phase")?.dataset.marks === "leaves" ? "leaves" : "calls";
    this.view = wholeView(this.figure);
    const holder = root.querySelector<HTMLElement>(".plot")!;
    this.plot = new uPlot(this.options(holder), [[0, 1], [null, null]], holder);
    this.hover = new Hover(this.plot.over, kind, this.marks);
    this.addControls(holder);
    new ResizeObserver(() => {
      const width = holder.clientWidth;
      if (width > 0 && width !== this.plot.width) {
        this.drawn = null;
        this.plot.setSize({ width, height: HEIGHT });
      }
    }).observe(holder);
  }

  /** Shows another file, from its beginning to its end. */
  async show(file: FileFigures): Promise<void> {
    this.file = file;
    this.figure = figureOf(file, this.kind);
    this.grid = null;
    this.points = null;
    this.root.querySelector("figcaption")!.textContent = this.figure.caption;
    const grid = decodeDensity(await readBlob(this.figure.blob), this.figure);
    if (this.file !== file) return;
    this.grid = grid;
    this.look(wholeView(this.figure));
  }

  /** Draws anew, e.g. in other colours. */
  redraw(): void {
    this.drawn = null;
    this.plot.redraw(false, true);
  }

  private look(view: View): void {
    this.view = inside(view, wholeView(this.figure));
    this.drawn = null;
    this.hover.hide();
    this.plot.batch(() => {
      this.plot.setScale("x", { min: this.view.x0, max: this.view.x1 });
      this.plot.setScale("y", { min: this.view.y0, max: this.view.y1 });
    });
    if (!this.points && (this.zoomed() || this.file.points.count <= DOTS_MAX)) this.fetchPoints();
  }

  private fetchPoints(): void {
    const file = this.file;
    this.loadPoints(file).then(
      (points) => {
        if (this.file !== file) return;
        this.points = points;
        this.redraw();
      },
      () => {
        this.status.textContent = `The single ${this.marks} could not be read from this report.`;
      },
    );
  }

  private zoomed(): boolean {
    const whole = wholeView(this.figure);
    return (Object.keys(whole) as (keyof View)[]).some((edge) => whole[edge] !== this.view[edge]);
  }

  private options(holder: HTMLElement): uPlot.Options {
    const { beginning = "phase", place = "file" } =
      this.root.closest<HTMLElement>("article.phase")?.dataset ?? {};
    return {
      width: Math.max(holder.clientWidth, 200),
      height: HEIGHT,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, auto: false, range: () => [this.view.x0, this.view.x1] },
        y: { auto: false, range: () => [this.view.y0, this.view.y1] },
      },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [
        this.marks === "leaves" ? leafAxis() : timeAxis(beginning),
        this.kind === "offset" ? bytesAxis(`offset in the ${place}`) : latencyAxis(),
      ],
      cursor: {
        points: { show: false },
        drag: { x: true, y: true, uni: 20, dist: 5, setScale: false },
        bind: { dblclick: () => () => this.reset() },
      },
      hooks: {
        draw: [() => this.draw()],
        setSelect: [() => this.zoomToSelection()],
        setCursor: [(plot) => this.hover.at(plot, this.drawn)],
      },
    };
  }

  private reset(): null {
    this.look(wholeView(this.figure));
    return null;
  }

  private zoomToSelection(): void {
    const { left, top, width, height } = this.plot.select;
    if (width <= 0 || height <= 0) return;
    const view = {
      x0: this.plot.posToVal(left, "x"),
      x1: this.plot.posToVal(left + width, "x"),
      y0: this.plot.posToVal(top + height, "y"),
      y1: this.plot.posToVal(top, "y"),
    };
    this.plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.look(view);
  }

  private draw(): void {
    if (!this.grid) return;
    this.drawn ??= this.prepare(this.grid);
    const { ctx, bbox } = this.plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    if (this.drawn.kind === "dots") this.drawDots(this.drawn);
    else this.drawDensity(this.drawn);
    ctx.restore();
    this.root.dataset.view = Object.values(this.view).join(",");
    this.root.dataset.drawn = this.drawn.kind;
  }

  /** Decides what this view is best shown as. */
  private prepare(grid: Density): Drawn {
    const { points, view } = this;
    const columns = Math.max(1, Math.floor(this.plot.over.clientWidth / CELL_SIZE));
    const rows = Math.max(1, Math.floor(this.plot.over.clientHeight / CELL_SIZE));
    const stride = this.file.points.stride;
    if (points && (this.zoomed() || stride === 1)) {
      const y = this.kind === "offset" ? points.offset : points.latencyLog;
      const indexes = pointsInside(points, y, view, DOTS_MAX);
      if (indexes) {
        this.say(`${formatCount(indexes.length)} ${this.marks}, one mark each`, stride);
        return { kind: "dots", points, y, indexes };
      }
      if (this.zoomed()) {
        const { density, total } = countPoints(points, y, view, columns, rows);
        this.say(`${formatCount(total)} ${this.marks}, shaded by number`, stride);
        return { kind: "density", density, view, picture: paint(density, theme()) };
      }
    }
    const total = grid.reads.reduce((a, b) => a + b, 0) + grid.writes.reduce((a, b) => a + b, 0);
    this.say(`${formatCount(total)} ${this.marks}, shaded by number`, 1);
    const density = this.zoomed() ? grid : coarser(grid, columns * 1.1, rows * 1.1);
    const whole = wholeView(this.figure);
    return { kind: "density", density, view: whole, picture: paint(density, theme()) };
  }

  private say(text: string, stride: number): void {
    this.status.textContent = stride > 1 ? `${text} (one in ${formatCount(stride)} kept)` : text;
  }

  private drawDensity(drawn: Drawn & { kind: "density" }): void {
    const { ctx } = this.plot;
    const left = this.plot.valToPos(drawn.view.x0, "x", true);
    const right = this.plot.valToPos(drawn.view.x1, "x", true);
    const top = this.plot.valToPos(drawn.view.y1, "y", true);
    const bottom = this.plot.valToPos(drawn.view.y0, "y", true);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(drawn.picture, left, top, right - left, bottom - top);
  }

  private drawDots(drawn: Drawn & { kind: "dots" }): void {
    const { ctx } = this.plot;
    const { points, y, indexes } = drawn;
    const size = (indexes.length > 5000 ? 2 : 3) * uPlot.pxRatio;
    ctx.globalAlpha = indexes.length > 1000 ? 0.75 : 0.95;
    for (const kind of [0, KIND_WRITE]) {
      ctx.fillStyle = kind ? theme().writeDot : theme().readDot;
      for (const i of indexes) {
        if ((points.kind[i]! & KIND_WRITE) !== kind) continue;
        const left = this.plot.valToPos(points.time[i]!, "x", true);
        const top = this.plot.valToPos(y[i]!, "y", true);
        ctx.fillRect(left - size / 2, top - size / 2, size, size);
      }
    }
  }

  private addControls(holder: HTMLElement): void {
    const head = this.root.querySelector<HTMLElement>(".chart-head")!;
    head.append(this.status);
    addButton(head, "+", "Zoom in", () => this.look(scaled(this.view, 0.5)));
    addButton(head, "−", "Zoom out", () => this.look(scaled(this.view, 2)));
    addButton(head, "Reset", "Reset zoom", () => this.reset());
    holder.tabIndex = 0;
    holder.setAttribute("role", "group");
    holder.setAttribute("aria-label", "Figure; arrow keys move the zoomed part");
    holder.addEventListener("keydown", (event) => {
      const step = ARROWS[event.key];
      if (!step) return;
      event.preventDefault();
      this.look(moved(this.view, wholeView(this.figure), step));
    });
  }
}

const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-0.2, 0],
  ArrowRight: [0.2, 0],
  ArrowUp: [0, 0.2],
  ArrowDown: [0, -0.2],
};

function figureOf(file: FileFigures, kind: Kind): Figure {
  const figure = file[kind];
  if (!figure) throw new Error(`there is no ${kind} of ${file.label}`);
  return figure;
}

function wholeView(figure: Figure): View {
  return { x0: figure.x.low, x1: figure.x.high, y0: figure.y.low, y1: figure.y.high };
}

function scaled(view: View, factor: number): View {
  const [x, y] = [(view.x0 + view.x1) / 2, (view.y0 + view.y1) / 2];
  const width = ((view.x1 - view.x0) * factor) / 2;
  const height = ((view.y1 - view.y0) * factor) / 2;
  return { x0: x - width, x1: x + width, y0: y - height, y1: y + height };
}

/** Moved by shares of its size, up to the edge of the whole. */
function moved(view: View, whole: View, [right, up]: [number, number]): View {
  const clamp = (by: number, low: number, high: number) => Math.min(Math.max(by, low), high);
  const x = clamp(right * (view.x1 - view.x0), whole.x0 - view.x0, whole.x1 - view.x1);
  const y = clamp(up * (view.y1 - view.y0), whole.y0 - view.y0, whole.y1 - view.y1);
  return { x0: view.x0 + x, x1: view.x1 + x, y0: view.y0 + y, y1: view.y1 + y };
}

function inside(view: View, whole: View): View {
  const [x0, x1] = span(view.x0, view.x1, whole.x0, whole.x1);
  const [y0, y1] = span(view.y0, view.y1, whole.y0, whole.y1);
  return { x0, x1, y0, y1 };
}

function span(from: number, to: number, low: number, high: number): [number, number] {
  const least = (high - low) * SPAN_MIN;
  const start = Math.min(Math.max(from, low), high - least);
  const end = Math.max(Math.min(to, high), start + least);
  return [start, end];
}
