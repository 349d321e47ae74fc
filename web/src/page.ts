// The page of a seekscope report. All numbers stand in the document already; this draws the figures.

import "./intl_guard";
import "uplot/dist/uPlot.min.css";
import "./page.css";
import { barChart } from "./bar_chart";
import { Chart, type Kind } from "./chart";
import { addCopyButtons } from "./controls";
import { readPageData, type FileFigures, type PhaseFigures } from "./data";
import { heatMap } from "./heat_map";
import { lineChart } from "./line_chart";
import { loadPoints, type Points } from "./points";
import { onThemeChange } from "./theme";
import { tracks } from "./tracks";

async function start(): Promise<void> {
  const data = readPageData();
  addCopyButtons();
  const drawings: { redraw(): void }[] = [];
  onThemeChange(() => drawings.forEach((drawing) => drawing.redraw()));
  for (const lines of data.lines) drawings.push(lineChart(figure(lines.id), lines));
  for (const group of data.tracks) drawings.push(tracks(figure(group.id), group));
  for (const bars of data.bars) drawings.push(barChart(figure(bars.id), bars));
  for (const heat of data.heats) drawings.push(await heatMap(figure(heat.id), heat));
  const phases = document.querySelectorAll<HTMLElement>("article.phase");
  for (const article of phases) {
    const phase = data.phases[Number(article.dataset.phase)];
    if (phase) drawings.push(...(await startPhase(article, phase)));
  }
  document.documentElement.dataset.ready = "true";
}

function figure(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the report lacks the figure ${id}`);
  return element;
}

/** Both figures of a phase, and the menu of its files. */
async function startPhase(article: HTMLElement, phase: PhaseFigures): Promise<Chart[]> {
  const first = phase.files[0];
  const menu = article.querySelector("select");
  if (!first || !menu) return [];
  const load = loadedOnce(phase);
  const charts = [...article.querySelectorAll<HTMLElement>("figure.chart")].map(
    (root) => new Chart(root, root.dataset.kind as Kind, first, load),
  );
  const show = (file: FileFigures) => Promise.all(charts.map((chart) => chart.show(file)));
  menu.addEventListener("change", () => {
    const file = phase.files[Number(menu.value)];
    if (file) void show(file);
  });
  menu.disabled = false;
  // A browser may restore an earlier choice when the page is opened again.
  menu.value = "0";
  await show(first);
  return charts;
}

/** Both figures of a file share its points. */
function loadedOnce(phase: PhaseFigures): (file: FileFigures) => Promise<Points> {
  const loaded = new Map<FileFigures, Promise<Points>>();
  return (file) => {
    let points = loaded.get(file);
    if (!points) {
      points = loadPoints(file.points, phase.time_unit_s);
      loaded.set(file, points);
    }
    return points;
  };
}

start().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  for (const caption of document.querySelectorAll("figure.chart figcaption")) {
    caption.prepend(`This figure could not be drawn (${reason}). `);
  }
});
