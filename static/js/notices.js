// Says what a page cannot show by itself: no network, an answer that takes long or went wrong.
(() => {
  const place = document.querySelector("[data-notice]");
  if (!place) return;
  const SLOW = 5000;
  const OFFLINE = gettext("You are offline. What is shown stays as it was.");
  let slow;

  const say = (text) => { place.textContent = text; };

  window.addEventListener("offline", () => say(OFFLINE));
  window.addEventListener("online", () => say(""));
  if (!navigator.onLine) say(OFFLINE);

  // htmx asks for parts of a page; their failures would be seen by nobody.
  document.addEventListener("htmx:beforeRequest", () => {
    clearTimeout(slow);
    slow = setTimeout(() => say(gettext("This takes longer than usual…")), SLOW);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    clearTimeout(slow);
    if (event.detail.successful) say(navigator.onLine ? "" : OFFLINE);
  });
  document.addEventListener("htmx:sendError", () =>
    say(navigator.onLine ? gettext("The site does not respond. Wait a moment, then try again.") : OFFLINE));
  document.addEventListener("htmx:responseError", (event) => {
    const { status } = event.detail.xhr;
    const text = status >= 500
      ? gettext("Part of this page could not be loaded: the site had an error (%(status)s). Reload the page to try again.")
      : gettext("Part of this page could not be loaded (%(status)s). Reload the page.");
    say(interpolate(text, { status }, true));
  });
})();
