// Buttons that only a page with scripts has.

/** Adds a button that is called `title` by those who cannot see it. */
export function addButton(place: HTMLElement, text: string, title: string, act: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.title = title;
  element.setAttribute("aria-label", title);
  element.addEventListener("click", act);
  place.append(element);
  return element;
}

const SAID_MS = 1500;

/** A button beside every command that copies it. */
export function addCopyButtons(): void {
  for (const place of document.querySelectorAll<HTMLElement>(".copyable")) {
    const lines = [...place.querySelectorAll("code")];
    const text = lines.map((line) => line.textContent ?? "").join("\n");
    const button = addButton(place, "Copy", "Copy the command", () => {
      // Where the clipboard is out of reach the command is marked, to be copied by hand.
      const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
      copied.then(
        () => say(button, "Copied"),
        () => mark(lines),
      );
    });
  }
}

function say(button: HTMLButtonElement, text: string): void {
  button.textContent = text;
  setTimeout(() => (button.textContent = "Copy"), SAID_MS);
}

function mark(lines: Element[]): void {
  const selection = getSelection();
  const [first, last] = [lines[0], lines[lines.length - 1]];
  if (selection && first && last) selection.setBaseAndExtent(first, 0, last, last.childNodes.length);
}
