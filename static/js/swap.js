// Searching without loading the page anew: what a link or a form of the search page leads to is
// fetched, and takes the place of what is there. Addresses, the back button and new tabs work as
// they do without this script.
(() => {
  const place = () => document.getElementById("page");
  if (!place()) return;
  const KEPT = 20; // pages to go back to without asking
  const LATE_MS = 150; // what is quicker needs no sign of waiting
  const kept = new Map(); // address → HTML
  const said = document.querySelector("[data-said]");
  let shown = location.pathname + location.search;
  let asking = null;

  const keyOf = (url) => url.pathname + url.search;
  const isOurs = (url) => url.origin === location.origin && url.pathname === location.pathname;
  const template = (name) => document.querySelector(`template[data-${name}]`).content.cloneNode(true);

  const keep = (key, html) => {
    kept.delete(key);
    kept.set(key, html);
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  };

  // A link that was followed is there again behind it, as another element.
  const focusMark = () => {
    const element = document.activeElement;
    if (!place().contains(element)) return null;
    if (element.id) return () => document.getElementById(element.id);
    const list = element.closest("[id]")?.id;
    const text = element.textContent;
    return () => [...(document.getElementById(list)?.querySelectorAll("a, summary") ?? [])]
      .find((other) => other.textContent === text);
  };

  const showBox = (fresh) => {
    const [mine, theirs] = [document, fresh].map((page) => page.querySelector(".searchbox"));
    for (const field of mine.querySelectorAll("input[type=hidden]")) field.remove();
    mine.append(...theirs.querySelectorAll("input[type=hidden]"));
    const box = mine.querySelector("#q");
    box.value = theirs.querySelector("#q").value;
  };

  const show = (html) => {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const part = fresh.getElementById("page");
    if (!part) return false;
    const again = focusMark();
    for (const element of part.querySelectorAll("[data-js]")) element.hidden = false;
    place().replaceWith(part);
    document.querySelector("main > .messages")?.remove();
    document.title = fresh.title;
    showBox(fresh);
    if (again) (again() ?? document.getElementById("main")).focus({ preventScroll: true });
    const news = [".summary", ".blank h2", "h1"].map((name) => part.querySelector(name));
    said.textContent = news.find(Boolean)?.textContent ?? "";
    document.dispatchEvent(new Event("swapped"));
    return true;
  };

  const waiting = () => {
    place().setAttribute("aria-busy", "true");
    if (!place().querySelector(".hits")) place().replaceChildren(template("waiting"));
  };

  const answer = async (url) => {
    asking?.abort();
    asking = new AbortController();
    const signal = asking.signal;
    const late = setTimeout(waiting, LATE_MS);
    try {
      const response = await fetch(url, { signal });
      const html = await response.text();
      if (signal.aborted || response.redirected) return response.redirected ? null : undefined;
      if (response.ok) keep(keyOf(url), html);
      return html;
    } catch (error) {
      if (error.name === "AbortError") return undefined; // another question came after it
      place().replaceChildren(template("unanswered"));
      place().querySelector("a").href = url;
      return undefined;
    } finally {
      clearTimeout(late);
      if (!signal.aborted) place().removeAttribute("aria-busy");
    }
  };

  const remember = () => history.replaceState({ ...history.state, y: scrollY }, "");

  const go = async (url) => {
    remember();
    const html = await answer(url);
    if (html === undefined) return;
    shown = keyOf(url);
    history.pushState({ y: 0 }, "", url);
    if (html === null || !show(html)) location.assign(url);
    else if (!url.hash) scrollTo({ top: 0, behavior: "instant" });
  };

  const back = async () => {
    const url = new URL(location.href);
    if (keyOf(url) === shown) return; // only the part behind # changed
    const html = kept.get(keyOf(url)) ?? (await answer(url));
    if (html === undefined) return;
    shown = keyOf(url);
    if (html === null || !show(html)) location.reload();
    else scrollTo({ top: history.state?.y ?? 0, behavior: "instant" });
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute("download") || !link.closest("#page")) return;
    const url = new URL(link.href);
    const isHere = keyOf(url) === keyOf(location) && url.hash;
    if (!isOurs(url) || isHere) return;
    event.preventDefault();
    go(url);
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "get") return;
    const url = new URL(form.action);
    if (!isOurs(url)) return;
    event.preventDefault();
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    url.search = new URLSearchParams(given).toString();
    go(url);
  });

  addEventListener("popstate", back);
  addEventListener("pagehide", remember);
})();
