// Names under an axis, in the room that there is.

/** More lines would leave no room for the figure. */
const LINES_MAX = 4;

/** A name on lines of at most so many characters; words that are longer are broken. */
export function wrapped(name: string, room: number): string {
  const pieces = name.split(" ").flatMap((word) => word.match(new RegExp(`.{1,${room}}`, "gu")) ?? []);
  const lines: string[] = [];
  for (const piece of pieces) {
    const longer = lines.length === 0 ? piece : `${lines[lines.length - 1]} ${piece}`;
    if (longer.length <= room) lines.splice(-1, 1, longer);
    else lines.push(piece);
  }
  if (lines.length <= LINES_MAX) return lines.join("\n");
  const last = lines[LINES_MAX - 1]!;
  return [...lines.slice(0, LINES_MAX - 1), `${last.slice(0, room - 1)}…`].join("\n");
}

/** Every name, or every second, third, … of them, so that there is room for each. */
export function thinned(names: string[], room: number): string[] {
  const longest = Math.max(...names.map((name) => name.length)) + 1;
  const step = Math.ceil(longest / room);
  return names.map((name, i) => (i % step === 0 ? name : ""));
}
