// Fetches the parts beside the text when they come into sight; without it their links lead there.
(() => {
  if (!("IntersectionObserver" in window)) return;
  const fill = async (part) => {
    try {
      const answer = await fetch(part.dataset.part, { headers: { "HX-Request": "true" } });
      if (answer.ok && !answer.headers.get("HX-Redirect")) part.innerHTML = await answer.text();
    } catch {
      // The site is away: the link stays.
    }
  };
  const watcher = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      fill(target);
    }
  });
  for (const part of document.querySelectorAll("[data-part]")) watcher.observe(part);
})();

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
