// Follows a run: its events tell when the part #progress is to be fetched anew. Where there are none
// (too many pages follow runs, or a proxy holds events back) it is fetched every two seconds.
(() => {
  const part = () => document.getElementById("progress");
  const address = part()?.dataset.events;
  if (!address) return;
  const AGAIN_SECONDS = 15;
  let timer = 0;

  const isRunning = () => Boolean(part()?.dataset.events);
  const refresh = () => { if (isRunning()) window.htmx?.trigger(part(), "changed"); };
  const rest = () => {
    clearInterval(timer);
    timer = 0;
  };
  const poll = () => {
    timer ||= setInterval(() => { if (isRunning()) refresh(); else rest(); }, 2000);
  };

  const follow = () => {
    if (!isRunning()) return;
    const events = new EventSource(address);
    events.addEventListener("open", rest);
    events.addEventListener("progress", refresh);
    events.addEventListener("end", () => {
      events.close();
      rest();
      refresh();
    });
    events.addEventListener("error", () => {
      poll();
      // Refused: the browser does not try again by itself.
      if (events.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN_SECONDS * 1000);
    });
    addEventListener("pagehide", () => events.close(), { once: true });
  };

  if ("EventSource" in window) follow();
  else poll();
})();
