// Figures as a reader sees them: pixels, tips, and what is under the pointer.

export const figure = (page, phase, kind) =>
  page.locator(`article.phase[data-phase="${phase}"] figure[data-kind="${kind}"]`);

export const drawnAs = (chart, kind) =>
  chart.and(chart.page().locator(`[data-drawn="${kind}"]`)).waitFor({ timeout: 30_000 });

export async function view(chart) {
  const text = await chart.getAttribute("data-view");
  const [x0, x1, y0, y1] = text.split(",").map(Number);
  return { x0, x1, y0, y1 };
}

/** Drags over the middle of a figure, from and to shares of its width and height. */
export async function drag(chart, [fromX, fromY], [toX, toY]) {
  const over = chart.locator(".u-over");
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  const mouse = chart.page().mouse;
  await mouse.move(box.x + box.width * fromX, box.y + box.height * fromY);
  await mouse.down();
  await mouse.move(box.x + box.width * toX, box.y + box.height * toY, { steps: 4 });
  await mouse.up();
}

/** Height (0 bottom, 1 top) of every coloured pixel, by twentieths of the figure's width. */
export function colouredHeights(chart) {
  return chart.evaluate((root) => {
    const canvas = root.querySelector("canvas");
    const over = root.querySelector(".u-over").getBoundingClientRect();
    const outer = canvas.getBoundingClientRect();
    const ratio = canvas.width / outer.width;
    const [left, top] = [(over.left - outer.left) * ratio, (over.top - outer.top) * ratio];
    const [width, height] = [Math.floor(over.width * ratio), Math.floor(over.height * ratio)];
    // Read from a copy: reading the page's own canvas makes the browser complain.
    const copy = new OffscreenCanvas(width, height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, -Math.round(left), -Math.round(top));
    const pixels = context.getImageData(0, 0, width, height).data;
    const bands = Array.from({ length: 20 }, () => []);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const [r, , b, alpha] = pixels.subarray((y * width + x) * 4, (y * width + x) * 4 + 4);
        // Reads are blue; the grid lines behind are grey.
        if (alpha > 0 && b - r > 40) bands[Math.floor((x / width) * 20)].push(1 - y / height);
      }
    }
    return bands;
  });
}

/** How many pixels inside a figure's axes have one of the colours of lines, by colour. */
export function drawnColours(page, id) {
  return page.locator(`#${id}`).evaluate((root) => {
    const canvas = root.querySelector("canvas");
    // Read from a copy: reading the page's own canvas makes the browser complain.
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
    const style = getComputedStyle(document.documentElement);
    const counts = Array(8).fill(0);
    const colours = counts.map((_, i) => {
      const hex = Number.parseInt(style.getPropertyValue(`--line-${i}`).trim().slice(1), 16);
      return [hex >> 16, (hex >> 8) & 255, hex & 255];
    });
    for (let i = 0; i < pixels.length; i += 4) {
      const line = colours.findIndex((rgb) => rgb.every((c, at) => Math.abs(c - pixels[i + at]) < 3));
      if (line >= 0 && pixels[i + 3] > 250) counts[line]++;
    }
    return counts;
  });
}

export const tipText = (page, id) => page.locator(`#${id} .tip`).innerText();

export async function pointAt(page, id, share) {
  const over = page.locator(`#${id} .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
}
