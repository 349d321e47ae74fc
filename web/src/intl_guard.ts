// uPlot asks for a number format in the browser's language while it loads, and a browser with an
// odd locale would then lose the whole page. Must be imported before it.

try {
  new Intl.NumberFormat(navigator.language);
} catch {
  const Original = Intl.NumberFormat;
  const fallback = function (_locales?: unknown, options?: Intl.NumberFormatOptions) {
    return new Original("en-US", options);
  };
  Object.defineProperty(Intl, "NumberFormat", { value: fallback });
}

export {};
