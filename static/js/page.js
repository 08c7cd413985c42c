// The real page beside the text: keys turn it, the first mark comes into sight and is told, Page and
// Text change places without loading. Without it all of them are links.
(() => {
  const page = document.getElementById("page");
  const sheet = page.querySelector(".sheet");
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

  const number = page.querySelector("[name=page]");
  number.addEventListener("change", () => number.form.requestSubmit());
  if (!sheet) return;

  sheet.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const steps = { ArrowLeft: "-1", PageUp: "-1", ArrowRight: "1", PageDown: "1" };
    const step = steps[event.key];
    const wide = sheet.scrollWidth > sheet.clientWidth + 1 && event.key.startsWith("Arrow");
    const link = step && !wide && page.querySelector(`[data-turn="${step}"]`);
    if (!link) return;
    event.preventDefault();
    sessionStorage.setItem("page-keys", "1");
    link.click();
  });
  if (sessionStorage.getItem("page-keys")) {
    sessionStorage.removeItem("page-keys");
    sheet.focus({ preventScroll: true });
  }

  const zoom = page.querySelector("[data-zoom]");
  zoom.hidden = false;
  const setZoom = (large) => {
    sheet.classList.toggle("large", large);
    zoom.setAttribute("aria-pressed", String(large));
    zoom.querySelector("span").textContent = large ? "Fit width" : "Larger";
    sheet.querySelector("img").sizes = large ? "100rem" : "(max-width: 75rem) 100vw, 40rem";
    showMark();
  };
  zoom.addEventListener("click", () => setZoom(!sheet.classList.contains("large")));

  function showMark() {
    const mark = sheet.querySelector("rect.found") ?? sheet.querySelector("rect");
    if (!mark || !sheet.offsetParent) return;
    const { top, left } = mark.getBoundingClientRect();
    const box = sheet.getBoundingClientRect();
    if (sheet.scrollHeight > sheet.clientHeight) sheet.scrollTop += top - box.top - sheet.clientHeight / 3;
    else if (top < 130 || top > innerHeight * 0.8) scrollBy({ top: top - innerHeight / 3 });
    if (left > box.right - 60 || left < box.left) sheet.scrollLeft += left - box.left - 40;
  }

  addEventListener("load", () => {
    showMark();
    const told = page.querySelector("[data-told]");
    told.textContent = told.dataset.told;
  });
})();
