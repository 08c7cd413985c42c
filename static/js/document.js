// Lights the words that the search found inside the marked passage, and scrolls to the first of
// them where the passage is longer than the window.
(() => {
  const asked = new URLSearchParams(location.search).get("words");
  if (!asked || !CSS.highlights) return;
  const words = new Set(asked.toLowerCase().split(" "));
  const ranges = [];
  for (const passage of document.querySelectorAll(".text .passage")) {
    const texts = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const found of texts.currentNode.data.matchAll(/[\p{L}\p{N}]+/gu)) {
        if (!words.has(found[0].toLowerCase())) continue;
        const range = new Range();
        range.setStart(texts.currentNode, found.index);
        range.setEnd(texts.currentNode, found.index + found[0].length);
        ranges.push(range);
      }
    }
  }
  if (!ranges.length) return;
  CSS.highlights.set("asked", new Highlight(...ranges));
  addEventListener("load", () => {
    const { top } = ranges[0].getBoundingClientRect();
    if (top > innerHeight * 0.8) scrollBy({ top: top - innerHeight / 3 });
  });
})();
