// A small box beside the pointer, with lines of text.

const WIDTH = 240;
const DISTANCE = 12;

export class Tip {
  private readonly box = document.createElement("div");

  constructor(private readonly over: HTMLElement) {
    this.box.className = "tip";
    this.box.hidden = true;
    over.append(this.box);
  }

  hide(): void {
    this.box.hidden = true;
  }

  /** Shows the lines on that side of the point where there is room. */
  show(lines: string[], left: number, top: number): void {
    this.box.hidden = false;
    this.box.replaceChildren(
      ...lines.map((line) => {
        const row = document.createElement("div");
        row.textContent = line;
        return row;
      }),
    );
    const { clientWidth, clientHeight } = this.over;
    const beyond = left + WIDTH > clientWidth;
    const low = top > clientHeight / 2;
    this.box.style.left = beyond ? "" : `${left + DISTANCE}px`;
    this.box.style.right = beyond ? `${clientWidth - left + DISTANCE}px` : "";
    this.box.style.top = low ? "" : `${top + DISTANCE}px`;
    this.box.style.bottom = low ? `${clientHeight - top + DISTANCE}px` : "";
  }
}
