// Follows a run: its events tell when the part #progress is to be fetched anew. Where there are none
// (too many pages follow runs, or a proxy holds events back) it is fetched every two seconds.
(() => {
  const part = () => document.getElementById("progress");
  const address = part()?.dataset.events;
  if (!address) return;
  const AGAIN_SECONDS = 15;
  const LOOK_SECONDS = 10; // whatever the events say
  let timer = 0;

  const isRunning = () => Boolean(part()?.dataset.events);

  const fetched = async () => {
    const answer = await fetch(location.href, { headers: { "HX-Request": "true" } });
    const elsewhere = answer.headers.get("HX-Redirect");
    if (elsewhere) location.assign(elsewhere); // logged out meanwhile
    return new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
  };
  const show = (found) => {
    const fresh = found.getElementById("progress");
    const said = found.getElementById("said");
    const focused = document.activeElement?.id;
    if (fresh) part().replaceWith(fresh);
    if (said) document.getElementById("said").textContent = said.textContent;
    if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
  };
  let working = false;
  let isStale = false;
  const refresh = async () => {
    isStale = isRunning();
    if (working) return;
    working = true;
    while (isStale) {
      isStale = false;
      try {
        show(await fetched());
      } catch {
        // The site is away: the next event, or the next look, finds it again.
      }
    }
    working = false;
  };
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

  setInterval(refresh, LOOK_SECONDS * 1000);
  if ("EventSource" in window) follow();
  else poll();
})();
