// Read latency by percentile, a line per phase.

import uPlot from "uplot";
import { latencyAxis, percentileAxis } from "./axes";
import type { Percentiles } from "./data";
import { theme } from "./theme";

const HEIGHT = 320;

export function percentileChart(root: HTMLElement, data: Percentiles): { redraw(): void } {
  const holder = root.querySelector<HTMLElement>(".plot")!;
  const x = data.x.map(Math.log10);
  const curves = data.curves.map((curve) =>
    data.x.map((_, i) => {
      const ns = curve.latency_ns[i];
      return ns === undefined ? null : Math.log10(Math.max(ns, 1));
    }),
  );
  const heights = curves.flat().filter((y) => y !== null);
  const low = Math.floor(Math.min(...heights));
  const high = Math.max(Math.ceil(Math.max(...heights)), low + 1);
  const series = data.curves.map(
    (_, line): uPlot.Series => ({
      stroke: () => theme().lines[line % 8]!,
      width: 2,
      // Told apart without colour too; page.css draws the legend alike.
      dash: line % 2 ? [7, 4] : [],
      points: { show: false },
    }),
  );
  const plot = new uPlot(
    {
      width: Math.max(holder.clientWidth, 200),
      height: HEIGHT,
      padding: [8, 24, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: [0, Math.max(...x)] },
        y: { range: [low, high] },
      },
      series: [{}, ...series],
      axes: [percentileAxis(), latencyAxis()],
    },
    [x, ...curves],
    holder,
  );
  new ResizeObserver(() => {
    const width = holder.clientWidth;
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
  }).observe(holder);
  return { redraw: () => plot.redraw(false, true) };
}
