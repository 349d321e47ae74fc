// Figures above one another on one axis of time, with one pointer and one zoom for all.

import uPlot from "uplot";
import { addButton } from "./controls";
import type { Band, LineData, TrackGroup } from "./data";
import { drawMarks, series, valuePlaces } from "./line_chart";
import { SCALES } from "./scales";
import type { Drawing } from "./small_plot";
import { theme } from "./theme";

const HEIGHT = 96;
/** What the numbers and the name of the axis of time take below the last track. */
const TIME_AXIS = 46;
/** Of the axis of values: the same in all tracks, so that moments stand above one another. */
const VALUE_AXIS = 72;
/** No zoom beyond this share of the whole axis. */
const SPAN_MIN = 1e-4;

type Range = [number, number];

export function tracks(root: HTMLElement, data: TrackGroup): Drawing {
  const whole: Range = [data.low, Math.max(data.high, data.low + 1e-9)];
  const group = new Group(root, data, whole);
  return { redraw: () => group.redraw() };
}

class Group {
  private readonly plots: uPlot[];
  private readonly moment: HTMLOutputElement;
  private view: Range;

  constructor(
    private readonly root: HTMLElement,
    private readonly data: TrackGroup,
    private readonly whole: Range,
  ) {
    this.view = whole;
    this.moment = root.querySelector<HTMLOutputElement>("output.moment")!;
    this.plots = data.tracks.map((track, i) => this.plot(track, i));
    this.addControls();
    this.look(whole);
  }

  redraw(): void {
    for (const plot of this.plots) plot.redraw(false, true);
  }

  private look([from, to]: Range): void {
    const [low, high] = this.whole;
    const span = Math.max(Math.min(to - from, high - low), (high - low) * SPAN_MIN);
    const start = Math.min(Math.max(from, low), high - span);
    this.view = [start, start + span];
    this.root.dataset.view = this.view.join(",");
    for (const plot of this.plots) plot.setScale("x", { min: this.view[0], max: this.view[1] });
  }

  private zoom(factor: number): void {
    const [from, to] = this.view;
    const middle = (from + to) / 2;
    const half = ((to - from) * factor) / 2;
    this.look([middle - half, middle + half]);
  }

  private plot(track: LineData, index: number): uPlot {
    const figure = document.getElementById(track.id);
    if (!figure) throw new Error(`the report lacks the figure ${track.id}`);
    const holder = figure.querySelector<HTMLElement>(".plot")!;
    const outputs = [...figure.querySelectorAll<HTMLOutputElement>(".legend output")];
    const last = index === this.data.tracks.length - 1;
    const height = HEIGHT + (last ? TIME_AXIS : 0);
    const [x, y] = [SCALES[track.x], SCALES[track.y]];
    const { values, lowest, highest } = valuePlaces(track);
    const unnamed = { label: "", labelSize: 0 };
    const bare = { ...unnamed, size: 4, values: (_u: uPlot, splits: number[]) => splits.map(() => "") };
    const plot = new uPlot(
      {
        width: Math.max(holder.clientWidth, 200),
        height,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        scales: {
          x: { time: false, auto: false, range: () => this.view },
          y: { range: y.range(lowest, highest) },
        },
        series: [{}, ...track.lines.map((line) => ({ ...series(line, track), width: 1.6 }))],
        axes: [
          last ? x.axis() : { ...x.axis(), ...bare },
          { ...y.axis(), ...unnamed, size: VALUE_AXIS, space: 26 },
        ],
        cursor: {
          y: false,
          points: { size: 6 },
          drag: { x: true, y: false, setScale: false },
          bind: { dblclick: () => () => this.reset() },
          sync: {
            key: this.data.id,
            scales: ["x", null],
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true },
          },
        },
        hooks: {
          drawClear: [(plot) => drawBands(plot, this.data.bands, x.place)],
          draw: [
            (plot) => {
              const labelled = (mark: { x: number; label: string }) => ({ ...mark, label: index === 0 ? mark.label : "" });
              drawMarks(plot, this.data.marks.map(labelled), x.place);
            },
          ],
          setSelect: [(plot) => this.zoomToSelection(plot)],
          setCursor: [
            ({ cursor }) => this.read(track, outputs, cursor.left != null && cursor.left >= 0 ? cursor.idx : null),
          ],
        },
      },
      [track.xs.map(x.place), ...values],
      holder,
    );
    new ResizeObserver(() => {
      const width = holder.clientWidth;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height });
    }).observe(holder);
    return plot;
  }

  /** Writes the values under the pointer into the legend. */
  private read(track: LineData, outputs: HTMLOutputElement[], index: number | null | undefined): void {
    track.lines.forEach((line, i) => {
      const value = index == null ? null : line.values[index];
      outputs[i]!.textContent = value == null ? "" : SCALES[track.y].text(value);
    });
    if (index == null) {
      this.moment.textContent = "";
      return;
    }
    const second = track.xs[index]!;
    const within = this.data.bands.find(({ from, to }) => from <= second && second <= to);
    this.moment.textContent = SCALES[track.x].text(second) + (within ? `, ${within.label}` : "");
  }

  private zoomToSelection(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width <= 0) return;
    const range: Range = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.look(range);
  }

  private reset(): null {
    this.look(this.whole);
    return null;
  }

  private addControls(): void {
    const head = this.root.querySelector<HTMLElement>(".chart-head")!;
    addButton(head, "+", "Zoom in", () => this.zoom(0.5));
    addButton(head, "−", "Zoom out", () => this.zoom(2));
    addButton(head, "Reset", "Reset zoom", () => this.reset());
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "Tracks over time; left and right move the pointer, plus and minus zoom");
    this.moment.setAttribute("aria-live", "polite");
    const keys: Record<string, () => void> = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      "+": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      Escape: () => this.reset(),
    };
    this.root.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }

  /** To the next moment of the first track, in all of them. */
  private step(by: number): void {
    const first = this.plots[0];
    const xs = this.data.tracks[0]?.xs;
    if (!first || !xs) return;
    const at = first.cursor.idx;
    const seen = xs.findIndex((x) => x >= this.view[0]);
    const next = at == null || (first.cursor.left ?? -1) < 0 ? seen : at + by;
    const moment = xs[Math.min(Math.max(next, 0), xs.length - 1)]!;
    for (const plot of this.plots) plot.setCursor({ left: plot.valToPos(moment, "x"), top: 1 }, true);
  }
}

/** Shaded stretches of time, below the lines. */
function drawBands(plot: uPlot, bands: Band[], place: (x: number) => number): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = theme().text;
  ctx.globalAlpha = 0.16;
  for (const { from, to } of bands) {
    const left = plot.valToPos(place(from), "x", true);
    const width = Math.max(plot.valToPos(place(to), "x", true) - left, uPlot.pxRatio);
    ctx.fillRect(left, bbox.top, width, bbox.height);
  }
  ctx.restore();
}
