// Swaps the summary of a document, or of a set of them, in place; asks how far a language model is
// while it writes. Without it, the same links and forms lead to a page of their own.
(() => {
  const PAUSE_MS = 2000;
  const part = () => document.getElementById("summary");

  const swap = async (address, options = {}) => {
    try {
      const answer = await fetch(address, { headers: { "HX-Request": "true" }, ...options });
      if (!answer.ok || answer.headers.get("HX-Redirect")) return location.assign(address);
      const had = part().contains(document.activeElement);
      part().outerHTML = await answer.text();
      if (had) part().querySelector("[aria-current]")?.focus();
    } catch {
      // The site is away: what is there stays.
    }
    watch();
  };

  const watch = () => {
    const { poll } = part()?.dataset ?? {};
    if (poll) setTimeout(() => part()?.dataset.poll === poll && swap(poll), PAUSE_MS);
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("#summary a[data-swap]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    swap(link.href);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("#summary form")) return;
    event.preventDefault();
    const body = new FormData(event.target, event.submitter);
    swap(event.target.action, { method: "POST", body });
  });
  watch();
})();
