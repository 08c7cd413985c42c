// A page that waits for a worker: it is looked at again until nothing is open, keeping its place.
(() => {
  const again = async () => {
    if (document.hidden) return;
    const answer = await fetch(location.href);
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = document.getElementById("main");
    if (main.contains(document.activeElement) && document.activeElement !== main) return;
    main.replaceWith(page.getElementById("main"));
    if (!page.querySelector("script[src*='again.js']")) clearInterval(timer);
  };
  const timer = setInterval(() => again().catch(() => { /* the next time, then */ }), 3000);
})();
