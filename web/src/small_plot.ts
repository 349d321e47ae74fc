// What line and bar charts share: a plot that is as wide as its figure and cannot be zoomed.

import uPlot from "uplot";
import { Tip } from "./tip";

const HEIGHT = 300;

export interface Drawing {
  redraw(): void;
}

export interface SmallPlot {
  x: [number, number];
  y: [number, number];
  axes: [uPlot.Axis, uPlot.Axis];
  series: uPlot.Series[];
  data: uPlot.AlignedData;
  /** Drawn over the series. */
  draw(plot: uPlot): void;
  /** What to say of the value at that index. */
  tip(index: number): string[];
}

export function smallPlot(root: HTMLElement, chart: SmallPlot): Drawing {
  const holder = root.querySelector<HTMLElement>(".plot")!;
  let tip: Tip | null = null;
  const plot = new uPlot(
    {
      width: Math.max(holder.clientWidth, 200),
      height: HEIGHT,
      padding: [14, 24, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: chart.x }, y: { range: chart.y } },
      series: [{}, ...chart.series],
      axes: chart.axes,
      hooks: {
        draw: [chart.draw],
        setCursor: [
          ({ cursor }) => {
            const { idx, left, top } = cursor;
            const lines = idx == null || left == null || left < 0 ? [] : chart.tip(idx);
            if (lines.length > 0) tip?.show(lines, left!, top!);
            else tip?.hide();
          },
        ],
      },
    },
    chart.data,
    holder,
  );
  tip = new Tip(plot.over);
  new ResizeObserver(() => {
    const width = holder.clientWidth;
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
  }).observe(holder);
  return { redraw: () => plot.redraw(false, true) };
}
