// The real page beside the text: keys turn it, the first mark comes into sight and is told, Page and
// Text change places without loading. Without it all of them are links.
(() => {
  const page = document.getElementById("page");
  const paper = page.querySelector(".paper");
  const reading = page.closest(".reading");

  const tabs = [...document.querySelectorAll("[data-view]")];
  for (const tab of tabs) {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      reading.classList.toggle("show-page", tab.dataset.view === "page");
      reading.classList.toggle("show-text", tab.dataset.view === "text");
      for (const other of tabs) other.toggleAttribute("aria-current", false);
      tab.setAttribute("aria-current", "true");
      history.replaceState(null, "", tab.href);
      if (tab.dataset.view === "page") showMark();
    });
  }

  const number = page.querySelector("[name=page_number]");
  number.addEventListener("change", () => number.form.requestSubmit());
  if (!paper) return;

  paper.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const steps = { ArrowLeft: "-1", PageUp: "-1", ArrowRight: "1", PageDown: "1" };
    const step = steps[event.key];
    const wide = paper.scrollWidth > paper.clientWidth + 1 && event.key.startsWith("Arrow");
    const link = step && !wide && page.querySelector(`[data-turn="${step}"]`);
    if (!link) return;
    event.preventDefault();
    sessionStorage.setItem("page-keys", "1");
    link.click();
  });
  const zoom = page.querySelector("[data-zoom]");
  zoom.hidden = false;
  const setZoom = (large) => {
    paper.classList.toggle("large", large);
    zoom.setAttribute("aria-pressed", String(large));
    zoom.querySelector("span").textContent = large ? gettext("Fit width") : gettext("Larger");
    paper.querySelector("img").sizes = large ? "100rem" : "(max-width: 75rem) 100vw, 40rem";
    showMark();
  };
  zoom.addEventListener("click", () => setZoom(!paper.classList.contains("large")));

  function showMark() {
    const mark = paper.querySelector("rect.found") ?? paper.querySelector("rect");
    if (!mark || !paper.offsetParent) return;
    const { top, left } = mark.getBoundingClientRect();
    const box = paper.getBoundingClientRect();
    if (paper.scrollHeight > paper.clientHeight) paper.scrollTop += top - box.top - paper.clientHeight / 3;
    else if (top < 130 || top > innerHeight * 0.8) scrollBy({ top: top - innerHeight / 3 });
    if (left > box.right - 60 || left < box.left) paper.scrollLeft += left - box.left - 40;
  }

  addEventListener("load", () => {
    // Not before: the fragment of the address takes the focus.
    if (sessionStorage.getItem("page-keys")) {
      sessionStorage.removeItem("page-keys");
      paper.focus({ preventScroll: true });
    }
    showMark();
    const told = page.querySelector("[data-told]");
    told.textContent = told.dataset.told;
  });
})();
