// The keyboard on results: up and down move, enter opens (a link does that), e explains.
// Also typing into a long list of filters.
(() => {
  const links = [...document.querySelectorAll("[data-hit] h2 a")];
  const box = document.getElementById("q");

  const move = (step) => {
    const at = links.indexOf(document.activeElement);
    if (at === 0 && step < 0) box.focus();
    else links[at < 0 ? 0 : Math.min(at + step, links.length - 1)]?.focus();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const typing = event.target.closest("input, textarea, select");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && links.length && (!typing || (event.target === box && step > 0))) {
      event.preventDefault();
      move(step);
    } else if (event.key === "e" && !typing) {
      const why = event.target.closest("[data-hit]")?.querySelector("details");
      if (why) why.open = !why.open;
    }
  });

  for (const filter of document.querySelectorAll("[data-narrows]")) {
    const rows = [...document.getElementById(filter.dataset.narrows).children];
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
})();
